// printf for codelets: lines appear where those of Python codelets do, in the order of tiles and vertices.
#pragma once
#include <cstdarg>
#include <cstdio>
