"""Learn from a stream: nothing but ones at first, then one example at a time, then from a file.

python examples/stream.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import make_moons

from marginwise import OnlineSVC, load, save

X, y = make_moons(3000, noise=0.2, random_state=0)
X_test, y_test = X[2000:], y[2000:]

# A stream owes nobody a fair start: here the first hundred examples are all of class 1.
ones = np.flatnonzero(y[:2000])[:100]
rest = np.setdiff1d(np.arange(2000), ones)

model = OnlineSVC(C=10, gamma=1.0)
model.partial_fit(X[ones], y[ones], classes=[0, 1])
print(f"after {len(ones)} examples of one class: predicts {np.unique(model.predict(X_test))}")

# The others in batches. How they are cut into batches does not change the model.
for batch in np.array_split(rest[:1000], 10):
    model.partial_fit(X[batch], y[batch])
print(f"after 1,100 examples: accuracy {model.score(X_test, y_test):.3f}")

# And one by one, as they arrive: no batch to wait for, and little to check.
for i in rest[1000:]:
    model.learn_one(X[i], y[i])
print(f"after 2,000 examples: accuracy {model.score(X_test, y_test):.3f}")

# A model that is kept and taken up again is the model that never stopped.
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "moons.mwz"
    save(model, path)
    again = load(path)
for x, label in zip(X_test[:500], y_test[:500], strict=True):
    model.learn_one(x, label)
    again.learn_one(x, label)
same = np.array_equal(model.decision_function(X_test), again.decision_function(X_test))
print(f"kept, loaded and taught 500 more: {'the same' if same else 'another'} model, bit for bit")

# Settle what is held, once the stream pauses.
held = len(model.ids_)
model.finish()
print(f"finished: {len(model.support_)} support vectors of {held} examples held")
print(f"kernel values computed: {model.stats_['kernel_evaluations']:,}")
