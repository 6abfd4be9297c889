// Which layouts of vectors there are: all of them.
#pragma once
#define VECTOR_AVAIL_SHORT_SPAN 1
#define VECTOR_AVAIL_SCALED_PTR32 1
#define VECTOR_AVAIL_SCALED_PTR64 1
#define VECTOR_AVAIL_SCALED_PTR128 1
#define VECTORLIST_AVAIL_DELTAN 1
