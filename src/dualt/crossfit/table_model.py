"""A model of tables and texts as one JSON file: the rows that it learns from, and how.

scikit-learn stores fitted models as pickles, which run code when they are read. So the rows are kept, and the model is
fitted again, the same every time, whenever it predicts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dualt.crossfit.examples import read_examples
from dualt.crossfit.folds import fit_folds
from dualt.crossfit.models import families_of, quick_family
from dualt.crossfit.out_of_fold import encode
from dualt.errors import FileError
from dualt.files import json_text, make_folder, read_json, write_text

if TYPE_CHECKING:
    from pandas import DataFrame

MODEL_FILE = "model.json"
# Bytes of the largest model that is read.
_LARGEST = 4 << 30


@dataclass(frozen=True, eq=False)
class TableModel:
    """Models of `cross_fit`, to be fitted on corrected labels.

    `rows` has the columns to learn from, as text, and the column `label`, empty in rows that are not learned from.
    The columns `text` are texts, the others numbers and categories. `choices` and `weights` are those of `OutOfFold`.
    """

    rows: DataFrame
    label: str
    text: Sequence[str]
    choices: Sequence[int]
    weights: Sequence[float]
    random_state: int

    @property
    def features(self) -> list[str]:
        """The columns to learn from."""
        return [str(name) for name in self.rows.columns if name != self.label]

    def predict_probs(self, new: DataFrame) -> tuple[tuple[str, ...], NDArray[np.float64]]:
        """Fit the models, and return the classes and the probabilities of rows with the same columns.

        Nothing is learned from the new rows: the probabilities of one do not depend on the others.
        """
        import pandas as pd

        n_known = len(self.rows)
        both = pd.concat([self.rows[self.features], new[self.features]], ignore_index=True)
        examples = read_examples(both, None, list(self.text) or None, n_known)
        known, names, _ = encode(self.rows[self.label].tolist())
        targets = np.concatenate([known, np.full(len(new), -1)])
        fold, classes = (np.flatnonzero(known >= 0), np.arange(n_known, len(both))), np.arange(len(names))
        given = examples, targets, self.random_state
        families = [quick_family(*given)] if len(self.choices) == 1 else families_of(*given)
        probs = np.zeros((len(new), len(names)))
        for family, choice, weight in zip(families, self.choices, self.weights, strict=True):
            classifier = family.classifiers[choice]
            probs += weight * fit_folds(classifier, family.features, targets, [fold], classes=classes)[n_known:]
        return names, probs

    def save(self, folder: str | Path) -> None:
        """Write the model into `folder`, which is created if it does not exist."""
        names = ("label", "text", "choices", "weights", "random_state")
        content = {**{name: getattr(self, name) for name in names}, "rows": self.rows.to_dict("list")}
        write_text(make_folder(folder) / MODEL_FILE, json_text(content) + "\n")

    @classmethod
    def load(cls, folder: str | Path) -> TableModel:
        """Read a model folder."""
        import pandas as pd

        path = Path(folder) / MODEL_FILE
        content: Any = read_json(path, limit=_LARGEST)
        try:
            model = cls(**{**content, "rows": pd.DataFrame(content["rows"], dtype=str)})
            if not {model.label, *model.text} <= {*model.rows.columns} or len(model.choices) != len(model.weights):
                raise ValueError("its columns or models do not match")
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise FileError(f"Expected a model that dualt train wrote in {path}, got another file ({error}).") from None
        return model
