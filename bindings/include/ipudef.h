// Short vectors of the tile's registers, and the counter of hardware loops. They may overlay arrays of their elements.
#pragma once
#include <cstdint>
#include <poplar/HalfFloat.hpp>
#include <poplar/QuarterFloat.hpp>

#define POPCORE_VECTOR(ELEMENT, COUNT, NAME) typedef ELEMENT NAME __attribute__((vector_size(COUNT * sizeof(ELEMENT)), may_alias))
#if defined(POPCORE_HALF_SATURATES) || defined(POPCORE_HALF_STOCHASTIC)
typedef popcore::HalfVector<2> half2;
typedef popcore::HalfVector<4> half4;
typedef popcore::HalfVector<8> half8;
typedef popcore::HalfVector<16> half16;
#else
POPCORE_VECTOR(half, 2, half2);
POPCORE_VECTOR(half, 4, half4);
POPCORE_VECTOR(half, 8, half8);
POPCORE_VECTOR(half, 16, half16);
#endif
POPCORE_VECTOR(float, 2, float2);
POPCORE_VECTOR(float, 4, float4);
POPCORE_VECTOR(float, 8, float8);
POPCORE_VECTOR(char, 2, char2);
POPCORE_VECTOR(char, 4, char4);
POPCORE_VECTOR(char, 8, char8);
POPCORE_VECTOR(signed char, 2, schar2);
POPCORE_VECTOR(signed char, 4, schar4);
POPCORE_VECTOR(unsigned char, 2, uchar2);
POPCORE_VECTOR(unsigned char, 4, uchar4);
POPCORE_VECTOR(unsigned char, 8, uchar8);
POPCORE_VECTOR(short, 2, short2);
POPCORE_VECTOR(short, 4, short4);
POPCORE_VECTOR(unsigned short, 2, ushort2);
POPCORE_VECTOR(unsigned short, 4, ushort4);
POPCORE_VECTOR(int, 2, int2);
POPCORE_VECTOR(int, 4, int4);
POPCORE_VECTOR(unsigned, 2, uint2);
POPCORE_VECTOR(unsigned, 4, uint4);
POPCORE_VECTOR(int, 2, long2); // a long of a tile has 32 bits
POPCORE_VECTOR(int, 4, long4);
POPCORE_VECTOR(long long, 2, longlong2);
POPCORE_VECTOR(long long, 4, longlong4);
#undef POPCORE_VECTOR

typedef unsigned rptsize_t;
