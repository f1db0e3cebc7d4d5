"""Damaged files of each reader: they are read, or refused in one line that names them."""

import io
import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from common.errors import UserError, escape_unsafe
from common.files import read_json
from minbert import BiEncoder
from minbert.words import read_vectors
from pretrain.texts import read_nli_triplets
from reports.submissions import check_predictions
from tasks import build_task
from tasks.own_tasks import table_tasks
from tasks.predictions import read_scores
from tasks.readers import Examples
from tasks.tables import read_sentences

TOKENIZER = BiEncoder.from_pretrained("tiny").tokenizer
SST, QQP, TNEWS = (build_task(name) for name in ("sst", "qqp", "tnews"))
PAIR = 'id\tsentence1\tsentence2\tis_duplicate\na\tIs "it" so?\tno, é\t1.0\nb\tA\tB\t0.0\n'
NEWS = [{"sentence": f"文 {label}", "label": str(label)} for label in (100, 101)]
NLI = "premise\thypothesis\tlabel\na cat\tan animal\tentailment\na cat\ta dog\tcontradiction\n"
SCORES = io.BytesIO()
np.savez(SCORES, ids=["a", "b"], probabilities=np.eye(2, dtype=np.float32), targets=[0, 1])
READERS = {  # the file as it should be, and what reads it
    "ids-sst-train.csv": (
        "id\tsentence\tsentiment\n1\tA good film\t4\n2\tno\t1\n",
        lambda file: SST.read(file.parent, "train"),
    ),
    "quora-train.csv": (PAIR, lambda file: QQP.read(file.parent, "train")),
    "glue/tnews_public/train.json": (
        "\n".join(map(json.dumps, NEWS)),
        lambda file: TNEWS.read(file.parents[2], "train"),
    ),
    "own.csv": (
        "text,label\n" + "".join(f"guest {n},{'ab'[n % 2]}\n" for n in range(30)),
        lambda file: table_tasks(file, text="text", labels=["label"])[0].build().read(file, "dev"),
    ),
    "texts.jsonl": ('{"text": "é"}\n{"text": 2}', lambda file: [*read_sentences(file, "text")]),
    "texts.txt": ("One text.\nAnother one.\n", lambda file: [*read_sentences(file)]),
    "nli.csv": (NLI, read_nli_triplets),
    "glove.txt": ("word 1 2 3\na 0.5 1e-2 3\n", lambda file: read_vectors(file, ["word", "a"])),
    "config.json": ('{"a": [1, 2.5, null]}', lambda file: read_json(file, UserError)),
    "scores.npz": (SCORES.getvalue(), read_scores),
    "sst-dev-output.csv": (
        "id \t Predicted_Sentiment \n1 , 3 \n2 , 0 \n",
        lambda file: check_predictions(file, SST, ["1", "2"]),
    ),
}
PIECES = (
    *(b"\x00", b"\xff", b"\xef\xbb\xbf", b"\n", b"\r", b"\t", b",", b'"', b" , ", b"\\ud800"),
    *(b"nan", b"1e400", b"-1", b"{}", b"[" * 100_000, b"word " * 3000, "\u2028é".encode()),
)


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """The bytes, up to three times cut, with a piece put in, or with a piece in place of some."""
    for _ in range(draw(st.integers(0, 3))):
        begin = draw(st.integers(0, len(content)))
        end = draw(st.sampled_from([begin, begin + 1, begin + 5, len(content)]))
        piece = draw(st.sampled_from(PIECES) | st.binary(max_size=4))
        content = content[:begin] + piece + content[end:]
    return content


@pytest.mark.filterwarnings("ignore::common.errors.Notice")
@pytest.mark.parametrize("name", READERS)
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused_in_one_line(name, data, tmp_path):
    (content, read), file = READERS[name], tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    content = content if isinstance(content, bytes) else content.encode()
    file.write_bytes(data.draw(damaged(content)))
    try:
        found = read(file)
    except UserError as error:
        message = str(error)
        assert file.read_bytes() != content
        assert message == escape_unsafe(message)
        assert len(message.splitlines()) == 1
        assert str(file) in message
        assert len(message) < 1100
        return
    if isinstance(found, Examples):
        assert len(found) == len(set(found.ids)) == len(found.targets) > 0
        for column in found.texts:
            assert len(TOKENIZER(column)) == len(found)
