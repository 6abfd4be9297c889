// Declared here, defined in another file.
#pragma once
float weight(unsigned index);
#ifndef OFFSET
#define OFFSET 0
#endif
