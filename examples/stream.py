"""
Learning from a stream
======================

::

    python examples/stream.py

The stream starts with rows of a single class. The model learns batches with ``partial_fit``, then
single rows with ``learn_one``, and continues after it was saved and loaded.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import make_moons

from marginwise import OnlineSVC, load, save

X, y = make_moons(3000, noise=0.2, random_state=0)
X_test, y_test = X[2000:], y[2000:]

# %%
# A stream may start with a single class: here, the first hundred rows are of class 1.

ones = np.flatnonzero(y[:2000])[:100]
rest = np.setdiff1d(np.arange(2000), ones)

model = OnlineSVC(C=10, gamma=1.0)
model.partial_fit(X[ones], y[ones], classes=[0, 1])
print(f"after {len(ones)} examples of one class: predicts {np.unique(model.predict(X_test))}")

# %%
# Learn half of the other rows in batches. The size of the batches does not change the model.

seen, accuracies = [len(ones)], [model.score(X_test, y_test)]
for batch in np.array_split(rest[:1000], 10):
    model.partial_fit(X[batch], y[batch])
    seen.append(seen[-1] + len(batch))
    accuracies.append(model.score(X_test, y_test))
print(f"after 1,100 examples: accuracy {model.score(X_test, y_test):.3f}")

# %%
# Learn the others one by one, as they arrive. ``learn_one`` checks shape and type only.

for i in rest[1000:]:
    model.learn_one(X[i], y[i])
seen.append(2000)
accuracies.append(model.score(X_test, y_test))
print(f"after 2,000 examples: accuracy {model.score(X_test, y_test):.3f}")

# %%
# A model that was saved and loaded continues as if it had never stopped.

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "moons.mwz"
    save(model, path)
    again = load(path)
for x, label in zip(X_test[:500], y_test[:500], strict=True):
    model.learn_one(x, label)
    again.learn_one(x, label)
same = np.array_equal(model.decision_function(X_test), again.decision_function(X_test))
print(f"saved, loaded and taught 500 more: {'the same' if same else 'another'} model, bit for bit")

# %%
# Finish the model when the stream pauses: solve the problem over the stored examples.

held = len(model.ids_)
model.finish()
print(f"finished: {len(model.support_)} support vectors of {held} stored examples")
print(f"kernel values computed: {model.stats_['kernel_evaluations']:,}")

# %%
# The boundary after all rows, and the accuracy during training.

try:
    import matplotlib.pyplot as plt
except ImportError:
    raise SystemExit from None  # pip install 'marginwise[plot]' for the figure

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
grid_x, grid_y = np.meshgrid(np.linspace(-1.8, 2.8, 200), np.linspace(-1.3, 1.8, 200))
values = model.decision_function(np.column_stack([grid_x.ravel(), grid_y.ravel()]))
left.contourf(grid_x, grid_y, values.reshape(grid_x.shape), levels=[-99, 0, 99], alpha=0.25)
left.contour(grid_x, grid_y, values.reshape(grid_x.shape), levels=[-1, 0, 1], colors="0.3")
left.scatter(*X[:400].T, c=y[:400], s=8, cmap="viridis")
left.set(title="boundary and margin", xlabel="first feature", ylabel="second feature")
right.plot(seen, accuracies, marker="o")
right.set(title="accuracy during training", xlabel="rows learned", ylabel="test accuracy")
right.grid(alpha=0.25)
