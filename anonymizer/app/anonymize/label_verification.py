"""Verification of the labels of classes, read back from the rows to be published.

Independent of the code that makes classes and labels.
"""

import numpy as np

from anonymizer.algorithms.records.generalized_values import Form
from anonymizer.algorithms.records.published_values import ValueReader, uncovered
from anonymizer.algorithms.records.verification import short_classes
from anonymizer.app.anonymize.class_labels import Labelling
from anonymizer.app.anonymize.publication import CLASS_COLUMN, Publication
from anonymizer.domain.arrays import Int32Array
from anonymizer.errors import GuaranteeError
from anonymizer.files.coded_table import CodedTable
from anonymizer.files.tables import TextTable


def check_labels(
    table: TextTable, coded: CodedTable, publication: Publication, k: int, labelling: Labelling
) -> None:
    """Check the labels of each class.

    Raises `GuaranteeError` if a class is below k or has a label that does not cover every member.
    """
    first = np.unique(publication.frame[CLASS_COLUMN].to_numpy(), return_index=True)[1]
    columns = [publication.frame[qi.name].gather(first).to_list() for qi in coded.schema.qis]
    faults = n_faulty(coded, publication.class_of, columns, k, labelling)
    if faults:
        raise GuaranteeError(
            f"{table.path}: {faults} labels do not cover their class, or it is below k: "
            "nothing is published"
        )


def n_faulty(
    coded: CodedTable,
    class_of: Int32Array,
    columns: list[list[str]],
    k: int,
    labelling: Labelling,
) -> int:
    """Return how many classes are below k or have a label that does not cover every member.

    A class counts once for each such label.

    Parameters
    ----------
    class_of
        Published class of each record, negative where it has none.
    columns
        For each quasi-identifier, the published label of each class.
    """
    faults = len(short_classes(class_of, coded.records.person, k))
    each = zip(coded.schema.qis, columns, labelling.styles, strict=True)
    for j, (qi, published, style) in enumerate(each):
        reader = ValueReader(
            qi,
            areas_first=style.form is Form.PREFIX,
            per_day=style.per_day,
            midnight=style.midnight,
        )
        faults += len(uncovered(coded.records.qi[:, j], class_of, published, reader))
    return faults
