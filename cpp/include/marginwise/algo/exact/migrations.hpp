// The path: a record of which example moved from which set to which, and why.
#pragma once

#include "marginwise/algo/exact/free_set.hpp"
#include "marginwise/dual/dual.hpp"

namespace marginwise {

// An example moved from one set to another while `cause` was learned or forgotten.
struct Migration {
    std::int64_t cause, id;
    Index problem;
    Set from, to;
};

namespace exact {

// Records the migrations of one change (an arrival, a removal, ...) in one binary problem.
class Recorder {
  public:
    // Appends to `path`, or records nothing if it is null.
    Recorder(Vector<Migration>* path, std::int64_t cause) : path_(path), cause_(cause) {}

    void begin(const Dual<double>& D, Index c, const FreeSet& S) {
        D_ = &D;
        c_ = c;
        S_ = &S;
        if (!path_) return;
        start_ = path_->size();
        for (Index k = 0; k < problem().size; ++k) before_.push_back(set_of(problem(), S, k));
    }

    void record(Index k, Set from, Set to) {
        if (!path_ || from == to) return;
        path_->push_back({cause_, D_->members.ids[D_->subproblems[c_].member[k]], c_, from, to});
    }
    void record_removal(Index k) {
        if (path_) record(k, before_[k], Set::gone);
    }

    // Replaces the record of an abandoned path by direct migrations from the sets before the change
    // to the current sets. Removals are kept.
    void rewrite() {
        if (!path_) return;
        Vector<Migration> gone;
        for (Index i = start_; i < path_->size(); ++i)
            if ((*path_)[i].to == Set::gone) gone.push_back((*path_)[i]);
        path_->erase(path_->begin() + start_, path_->end());
        path_->insert(path_->end(), gone.begin(), gone.end());
        for (Index k = 0; k < before_.size(); ++k)
            if (problem().open[k]) record(k, before_[k], set_of(problem(), *S_, k));
    }

  private:
    const Problem& problem() const { return D_->subproblems[c_].P; }

    Vector<Migration>* path_;
    std::int64_t cause_;
    const Dual<double>* D_ = nullptr;
    const FreeSet* S_ = nullptr;
    Index c_ = 0;
    Index start_ = 0;     // of the migrations of this change in path_
    Vector<Set> before_;  // by place
};

}  // namespace exact
}  // namespace marginwise
