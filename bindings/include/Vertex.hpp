// An older place of poplar/Vertex.hpp.
#pragma once
#include <poplar/Vertex.hpp>
