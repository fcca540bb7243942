// Conversion of NumPy arrays to views of the core, and of arrays of the core to NumPy arrays.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/detail/nb_list.h>

#include "marginwise/base/types.hpp"

namespace nb = nanobind;
namespace mw = marginwise;

template <class V, Py_ssize_t N>
using NumPy = nb::ndarray<V, nb::ndim<N>, nb::c_contig, nb::device::cpu>;

// The name of an array argument. Arrays are never converted, because that would copy them.
constexpr auto operator""_array(const char* name, size_t) { return nb::arg(name).noconvert(); }

// A NumPy array that takes ownership of the memory of `values`.
template <class V>
nb::ndarray<nb::numpy, V> numpy_from(mw::Array<V> values, std::initializer_list<mw::Index> shape) {
    auto* kept = new mw::Array<V>(std::move(values));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<mw::Array<V>*>(p); });
    void* at = kept->empty() ? static_cast<void*>(kept) : kept->data();  // never address 0
    const std::vector<size_t> sizes(shape.begin(), shape.end());
    return {at, sizes.size(), sizes.data(), owner};
}

// Copies a NumPy array into `to`.
template <class V>
void read_array(nb::handle from, mw::Array<V>& to) {
    const auto view = nb::cast<NumPy<const V, 1>>(from);
    to.assign(view.data(), view.data() + view.size());
}
template <class V>
void read_array(nb::handle from, mw::OwnedMatrix<V>& to) {
    const auto view = nb::cast<NumPy<const V, 2>>(from);
    to = mw::OwnedMatrix<V>(mw::Index(view.shape(0)), mw::Index(view.shape(1)));
    std::copy_n(view.data(), view.size(), to.values.begin());
}

namespace nanobind::detail {

// An argument that is a view. The array outlives the call.
template <class View, class V, Py_ssize_t N>
struct view_caster {
    NB_TYPE_CASTER(View, (make_caster<NumPy<V, N>>::Name))
    make_caster<NumPy<V, N>> array;

    bool from_python(handle source, uint32_t flags, cleanup_list* cleanup) noexcept {
        if (!array.from_python(source, flags, cleanup)) return false;
        const auto n = [&](size_t axis) { return mw::Index(array.value.shape(axis)); };
        if constexpr (N == 1) value = {array.value.data(), n(0)};
        if constexpr (N == 2) value = {array.value.data(), n(0), n(1)};
        if constexpr (N == 3) value = {array.value.data(), n(0), n(1), n(2)};
        return true;
    }
};
template <class V>
struct type_caster<mw::View<V>> : view_caster<mw::View<V>, const V, 1> {};
template <class V>
struct type_caster<mw::DenseView<V>> : view_caster<mw::DenseView<V>, const V, 2> {};
template <class V>
struct type_caster<mw::CubeView<V>> : view_caster<mw::CubeView<V>, const V, 3> {};
template <class V>
struct type_caster<mw::MutableView<V>> : view_caster<mw::MutableView<V>, V, 2> {};

template <class V>
struct type_caster<mw::Vector<V>> : list_caster<mw::Vector<V>, V> {};

// Results.
template <class Owned, class V>
struct owned_caster {
    NB_TYPE_CASTER(Owned, (make_caster<ndarray<numpy, V>>::Name))

    static handle from_cpp(mw::Array<V>&& a, rv_policy, cleanup_list* cleanup) {
        const mw::Index n = a.size();
        return exported(numpy_from(std::move(a), {n}), cleanup);
    }
    static handle from_cpp(mw::OwnedMatrix<V>&& m, rv_policy, cleanup_list* cleanup) {
        return exported(numpy_from(std::move(m.values), {m.rows, m.cols}), cleanup);
    }
    static handle exported(const ndarray<numpy, V>& array, cleanup_list* cleanup) {
        return make_caster<ndarray<numpy, V>>::from_cpp(array, rv_policy::automatic, cleanup);
    }
};
template <class V>
struct type_caster<mw::Array<V>> : owned_caster<mw::Array<V>, V> {};
template <class V>
struct type_caster<mw::OwnedMatrix<V>> : owned_caster<mw::OwnedMatrix<V>, V> {};

}  // namespace nanobind::detail
