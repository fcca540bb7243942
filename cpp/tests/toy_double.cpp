// The learners of the toy streams in double precision, compiled for all programs.

#include "toy_stream.hpp"

TOY_LEARNERS(double, )
