// Declarations of stack use: a host has stack enough, so they say nothing here.
#pragma once
#define DEF_STACK_USAGE(BYTES, FUNCTION)
#define DEF_STACK_SIZE_OWN(BYTES, FUNCTION)
#define DEF_FUNC_CALL_PTRS(CALLER, CALLEES)
#define DEF_FUNCTION_CALL_PTRS(CALLER, CALLEES)
#define RECURSIVE_FUNCTION_SIZE (1024)
