// The triangular factor of a positive definite matrix whose rows and columns are added and removed.
//
// R'R = A, with R upper triangular and stored by rows, so that every loop runs along a row. A slot
// is a row and column of A. A removed slot becomes a hole, where R is that of the unit matrix;
// compact() removes the holes when there are many. Two right-hand sides are updated along with R:
// R' ones = 1 and R' load = q. After a change of A, only one triangular system is left to solve.
#pragma once

#include <algorithm>
#include <cmath>

#include "marginwise/base/compaction.hpp"
#include "marginwise/simd/dispatch.hpp"

namespace marginwise {

class Factor {
  public:
    // INVARIANT  R'R = A over the slots that are not holes
    //            a hole h: R[h][h] == 1, R[k][h] == R[h][k] == 0 for k != h,
    //            ones[h] == load[h] == 0
    Index slots() const { return size_; }
    Index holes() const { return holes_; }
    Index rank() const { return size_ - holes_; }
    bool is_hole(Index slot) const { return hole_[slot] != 0; }
    double entry(Index row, Index column) const { return R_[row * stride_ + column]; }
    bool wants_compaction() const { return holes_ >= 16 && 4 * holes_ >= size_; }

    // The Schur complement of a new diagonal element of A: what remains of `diagonal` after
    // projection on the slots. `column` has the elements of A with the slots, 0 at holes.
    double pivot(const double* column, double diagonal) {
        reduced_.assign(column, column + size_);
        forward(reduced_.data());
        return diagonal - table().dot_full(reduced_.data(), reduced_.data(), size_);
    }

    // v with A v = the last column passed to pivot().
    void explain(Array<double>& v) const {
        v.assign(reduced_.begin(), reduced_.end());
        backward(v.data());
    }

    // Appends the last column passed to pivot(), and `q` to the right-hand side.
    void append(double pivot, double q) {
        if (size_ == stride_) grow();
        const double root = std::sqrt(pivot);
        for (Index k = 0; k < size_; ++k) at(k, size_) = reduced_[k];
        at(size_, size_) = root;
        const double* l = reduced_.data();
        const double one = (1.0 - table().dot_full(l, ones_.data(), size_)) / root;
        const double load = (q - table().dot_full(l, load_.data(), size_)) / root;
        ones_.push_back(one);
        load_.push_back(load);
        hole_.push_back(0);
        ++size_;
    }

    void append_hole() {
        reduced_.assign(size_, 0.0);
        append(1.0, 0.0);
        ones_.back() = 0.0;
        hole_.back() = 1;
        ++holes_;
    }

    // Makes a slot a hole. Rotations move its row of R into the rows below.
    void remove(Index slot) {
        for (Index k = 0; k < slot; ++k) at(k, slot) = 0.0;
        double* x = row(slot);
        for (Index k = slot + 1; k < size_; ++k) {
            if (x[k] == 0.0) continue;
            double* r = row(k);
            const double length = std::hypot(r[k], x[k]);
            const double cosine = r[k] / length, sine = x[k] / length;
            table().rotate(r + k, x + k, cosine, sine, size_ - k);
            turn(ones_, k, slot, cosine, sine);
            turn(load_, k, slot, cosine, sine);
        }
        std::fill(x + slot + 1, x + size_, 0.0);
        x[slot] = 1.0;
        ones_[slot] = load_[slot] = 0.0;
        hole_[slot] = 1;
        ++holes_;
    }

    // Sets the right-hand side: q by slot, 0 at holes.
    void set_load(const double* q) {
        load_.assign(q, q + size_);
        forward(load_.data());
    }

    // beta and beta_b with  A beta + beta_b 1 = q  and  1'beta = sum  [laskov2006, eq. 7].
    struct Direction {
        Array<double> beta;  // by slot, 0 at holes
        double beta_b = 0.0;
    };
    void solve(double sum, Direction& out) const { solve(load_, sum, out); }

    // The same, where q is minus the last column passed to pivot().
    void solve_reduced(double sum, Direction& out) const {
        Array<double> load(reduced_.begin(), reduced_.end());
        for (double& x : load) x = -x;
        solve(load, sum, out);
    }

    // Removes the holes: slots compaction[0] < compaction[1] < ... become 0, 1, ...
    Compaction compact() {
        Compaction compaction;
        for (Index k = 0; k < size_; ++k)
            if (!is_hole(k)) compaction.add(k);
        for (Index k = 0; k < compaction.size(); ++k)
            for (Index l = k; l < compaction.size(); ++l)
                at(k, l) = entry(compaction[k], compaction[l]);
        compaction.apply(ones_);
        compaction.apply(load_);
        size_ = compaction.size();
        holes_ = 0;
        hole_.assign(size_, 0);
        return compaction;
    }

    void clear() {
        size_ = holes_ = 0;
        ones_.clear();
        load_.clear();
        hole_.clear();
    }

    // The whole factor, for a file: holes, ones, and R row by row. unpack() reads it back.
    Vector<double> packed() const {
        Vector<double> out;
        for (const std::uint8_t hole : hole_) out.push_back(hole);
        out.insert(out.end(), ones_.begin(), ones_.end());
        for (Index k = 0; k < size_; ++k)
            for (Index l = k; l < size_; ++l) out.push_back(entry(k, l));
        return out;
    }
    static Index packed_size(Index slots) { return 2 * slots + slots * (slots + 1) / 2; }
    void unpack(const double* from, Index slots) {
        clear();
        while (stride_ < slots) grow();
        size_ = slots;
        for (Index k = 0; k < slots; ++k) hole_.push_back(*from++ != 0.0);
        holes_ = std::count(hole_.begin(), hole_.end(), 1);
        ones_.assign(from, from + slots);
        from += slots;
        load_.assign(slots, 0.0);
        for (Index k = 0; k < slots; ++k)
            for (Index l = k; l < slots; ++l) at(k, l) = *from++;
    }

  private:
    double* row(Index k) { return R_.data() + k * stride_; }
    const double* row(Index k) const { return R_.data() + k * stride_; }
    double& at(Index k, Index l) { return R_[k * stride_ + l]; }

    static void turn(Array<double>& side, Index k, Index slot, double cosine, double sine) {
        double &r = side[k], &x = side[slot];
        const double before = r;
        r = cosine * before + sine * x;
        x = cosine * x - sine * before;
    }

    // Solves R'y = q in place.
    void forward(double* q) const {
        for (Index k = 0; k < size_; ++k) {
            q[k] /= row(k)[k];
            if (q[k] != 0.0) table().add_full(q + k + 1, row(k) + k + 1, -q[k], size_ - k - 1);
        }
    }
    // Solves R x = y in place.
    void backward(double* y) const {
        for (Index k = size_ - 1; k >= 0; --k) {
            const Index n = size_ - k - 1;
            y[k] = (y[k] - table().dot_full(row(k) + k + 1, y + k + 1, n)) / row(k)[k];
        }
    }

    void solve(const Array<double>& load, double sum, Direction& out) const {
        const double* u = ones_.data();
        out.beta_b =
            (table().dot_full(u, load.data(), size_) - sum) / table().dot_full(u, u, size_);
        out.beta.assign(load.begin(), load.begin() + size_);
        table().add_full(out.beta.data(), u, -out.beta_b, size_);
        backward(out.beta.data());
    }

    void grow() {
        const Index wider = std::max<Index>(64, stride_ + stride_ / 2);
        Array<double> R(wider * wider);
        for (Index k = 0; k < size_; ++k)
            std::copy(row(k) + k, row(k) + size_, R.data() + k * wider + k);
        R_ = std::move(R);
        stride_ = wider;
    }

    Array<double> R_, ones_, load_, reduced_;
    Vector<std::uint8_t> hole_;
    Index size_ = 0, holes_ = 0, stride_ = 0;
};

}  // namespace marginwise
