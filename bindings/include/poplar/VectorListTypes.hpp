// The types of fields, under another name that codelets include them by.
#pragma once
#include <poplar/Vertex.hpp>
