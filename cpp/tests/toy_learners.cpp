// The learners of the toy streams, compiled for all programs.

#include "toy_stream.hpp"

TOY_LEARNERS(float, )
TOY_LEARNERS(double, )
