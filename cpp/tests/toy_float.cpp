// The learners of the toy streams in single precision, compiled for all programs.

#include "toy_stream.hpp"

TOY_LEARNERS(float, )
