// assert: what fails ends the vertex and is reported with the codelet, tile and line.
#include <popcore/context.hpp>
#undef assert
#ifdef NDEBUG
#define assert(CONDITION) (static_cast<void>(0))
#else
#define assert(CONDITION) ((CONDITION) ? static_cast<void>(0) : popcore::fail(popcore::ASSERTION, #CONDITION, __FILE__, __LINE__))
#endif
