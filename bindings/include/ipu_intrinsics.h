// Functions of namespace ipu, under another name that codelets include them by.
#pragma once
#include <ipu_vector_math>
