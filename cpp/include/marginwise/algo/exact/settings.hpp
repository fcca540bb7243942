// The settings of an exact model.
#pragma once

#include "marginwise/base/arrays.hpp"

namespace marginwise {

struct ExactSettings {
    bool sphere = false;  // one class instead of two
    double nu = 0.0;      // of a sphere: the sum of alpha over the sum of hi; 0: the sum is 1
    Index window = 0;     // maximal number of examples per problem; 0: no limit
    bool oldest = false;  // a full window evicts the oldest example, not that of least |alpha|
    bool screens = true;  // whether to ignore examples far from the margin along a line
    bool record = false;  // record the path

    template <class F>
    void visit(F use) {  // record is set by the model
        use("sphere", sphere);
        use("nu", nu);
        use("window", window);
        use("oldest", oldest);
        use("screen", screens);
    }
};

}  // namespace marginwise
