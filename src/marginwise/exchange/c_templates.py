"""Templates of C source. Words between @ signs are replaced."""

from __future__ import annotations

HEADER = """\
/* @estimator@ of marginwise, kernel @kernel@, as C99 source.
 *
 * @name@_predict(x)        returns @returned@
 * @name@_decision(x, out)  writes @NAME@_DECISIONS decision values
 *
 * x has @NAME@_FEATURES features. Nothing is allocated, and nothing but `out` is changed.
@order@ */
#ifndef @NAME@_H
#define @NAME@_H

#include <math.h>

#define @NAME@_FEATURES @features@
#define @NAME@_DECISIONS @decisions@
#define @NAME@_PROBLEMS @problems@
"""

# -- the values of the binary problems ---------------------------------------------------------

VALUES = """\
/* The decision value of each binary problem. */
static inline void @name@_values(const @real@ *x, @real@ *f)
{
@prepare@    for (int c = 0; c < @NAME@_PROBLEMS; ++c)
        f[c] = @name@_intercepts[c];
@body@}

"""

PREPARE = {
    False: """\
    const @real@ *z = x;
""",
    True: """\
    @real@ z[@NAME@_FEATURES];
    for (int j = 0; j < @NAME@_FEATURES; ++j)
        z[j] = (x[j] - @name@_shift[j]) * @name@_factor[j];
""",
}

SQUARE = """\
    @real@ zz = 0;
    for (int j = 0; j < @NAME@_FEATURES; ++j)
        zz += z[j] * z[j];
"""

LINEAR = """\
    for (int c = 0; c < @NAME@_PROBLEMS; ++c)
        for (int j = 0; j < @NAME@_FEATURES; ++j)
            f[c] += @name@_coef[c][j] * z[j];
"""

COSINE = """\
    const @real@ norm = sqrt@f@(zz);
    if (norm > 0)
        for (int c = 0; c < @NAME@_PROBLEMS; ++c)
            for (int j = 0; j < @NAME@_FEATURES; ++j)
                f[c] += @name@_coef[c][j] * (z[j] / norm);
"""

# The sum over support vectors. The words are replaced by the computation of one kernel value k.
SUM = """\
    for (int m = 0; m < @NAME@_VECTORS; ++m) {
        @real@ k = 0@other@;
        for (int j = 0; j < @NAME@_FEATURES; ++j) {
            const @real@ s = @name@_vectors[m][j];
@term@        }
@transform@        for (int c = 0; c < @NAME@_PROBLEMS; ++c)
            f[c] += @name@_weights[m][c] * k;
    }
"""

OTHER = {"tanimoto": ", ss = 0"}

TERM = {
    "rbf": """\
            k += (z[j] - s) * (z[j] - s);
""",
    "tanimoto": """\
            k += z[j] * s;
            ss += s * s;
""",
    "product": """\
            k += z[j] * s;
""",
}

TRANSFORM = {
    "rbf": """\
        k = exp@f@(-@gamma@ * k);
""",
    "poly": """\
        const @real@ base = @gamma@ * k + @coef0@;
        k = 1;
        for (int d = 0; d < @degree@; ++d)
            k *= base;
""",
    "sigmoid": """\
        k = tanh@f@(@gamma@ * k + @coef0@);
""",
    "tanimoto": """\
        k = zz + ss - k > 0 ? k / (zz + ss - k) : 1;
""",
}

# The signed distance of x from the sphere, positive inside; `own` is K(x, x). Values within the
# rounding error are set to 0.
SPHERE = """\
@own@    const @real@ side = @total@ * own;
    f[0] -= side / 2;
    if (fabs@f@(f[0]) <= @rounding@ * (side + fabs@f@(@name@_intercepts[0])))
        f[0] = 0;
"""

OWN = {
    "rbf": """\
    const @real@ own = 1;
""",
    "cosine": """\
    const @real@ own = zz > 0 ? 1 : 0;
""",
    "linear": """\
    const @real@ own = zz;
""",
    "poly": """\
    @real@ own = 1;
    for (int d = 0; d < @degree@; ++d)
        own *= @gamma@ * zz + @coef0@;
""",
    "sigmoid": """\
    const @real@ own = tanh@f@(@gamma@ * zz + @coef0@);
""",
}
OWN["tanimoto"] = OWN["rbf"]

# -- decision values and labels ----------------------------------------------------------------

DIRECT = """\
static inline void @name@_decision(const @real@ *x, @real@ *out)
{
    @name@_values(x, out);
}

"""

PAIRS = """\
/* The number of pairs that each class wins, plus a fraction that decides ties. */
static inline void @name@_decision(const @real@ *x, @real@ *out)
{
    @real@ f[@NAME@_PROBLEMS], sums[@NAME@_CLASSES];
    @name@_values(x, f);
    for (int c = 0; c < @NAME@_CLASSES; ++c)
        out[c] = sums[c] = 0;
    for (int a = 0, p = 0; a < @NAME@_CLASSES; ++a)
        for (int b = a + 1; b < @NAME@_CLASSES; ++b, ++p) {
            const @real@ clipped = f[p] > 1 ? 1 : f[p] < -1 ? -1 : f[p];
            out[f[p] > 0 ? b : a] += 1;
            sums[a] -= clipped;
            sums[b] += clipped;
        }
    for (int c = 0; c < @NAME@_CLASSES; ++c)
        out[c] += sums[c] / (3 * (fabs@f@(sums[c]) + 1));
}

"""

PREDICT = {
    "sphere": """\
static inline int @name@_predict(const @real@ *x)
{
    @real@ out[1];
    @name@_decision(x, out);
    return out[0] >= 0 ? 1 : -1;
}
""",
    "two": """\
static inline int @name@_predict(const @real@ *x)
{
    @real@ out[1];
    @name@_decision(x, out);
    return out[0] > 0 ? 1 : 0;
}
""",
    "more": """\
static inline int @name@_predict(const @real@ *x)
{
    @real@ out[@NAME@_CLASSES];
    int best = 0;
    @name@_decision(x, out);
    for (int c = 1; c < @NAME@_CLASSES; ++c)
        if (out[c] > out[best])
            best = c;
    return best;
}
""",
}
