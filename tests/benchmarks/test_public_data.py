"""The data that the public programs read: what their parts say of one another, and what stands in for libraries."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from benchmarks.public import data
from benchmarks.public.notebooks import write_script


def printed_in(folder: Path, *words: str) -> str:
    """What Python prints that runs ``words`` in ``folder``."""
    done = subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture
def made(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    folder = tmp_path / request.param
    data.MAKERS[request.param](folder)
    return folder


@pytest.mark.parametrize("made", ["triples"], indirect=True)
def test_the_answer_to_a_question_is_among_its_true_ones(made: Path) -> None:
    known = pickle.loads((made / "to_skip.pickle").read_bytes())
    ways = pickle.loads((made / "train.pickle").read_bytes())[:, 1].max() + 1
    for split in ("valid", "test"):
        for one, way, other in pickle.loads((made / f"{split}.pickle").read_bytes()).tolist():
            assert other in known["rhs"][one, way]
            assert one in known["lhs"][other, way + ways]


@pytest.mark.parametrize("made", ["aspects"], indirect=True)
def test_a_review_has_a_graph_of_its_words(made: Path) -> None:
    for file in made.glob("semeval14/*.seg"):
        lines = file.read_text().splitlines()
        graphs = pickle.loads(file.with_name(f"{file.name}.graph").read_bytes())
        assert list(graphs) == list(range(0, len(lines), 3))
        for first, graph in graphs.items():
            assert len(graph) == len(lines[first].replace("$T$", lines[first + 1]).split())


@pytest.mark.parametrize("made", ["banners"], indirect=True)
def test_a_line_of_clicks_has_a_value_or_a_gap_for_each_title(made: Path) -> None:
    rows = [line.split(",") for line in (made / "criteo_sample.txt").read_text().splitlines()]
    assert {len(row) for row in rows} == {40}
    assert any(not value for value in rows[1])


@pytest.mark.parametrize("made", ["segments"], indirect=True)
def test_a_configuration_names_the_pictures_beside_it(made: Path) -> None:
    config = json.loads((made / "config.json").read_text())
    assert config["train_loader"]["args"]["data_dir"] == str(made.parent / "voc")


@pytest.mark.parametrize("made", ["events"], indirect=True)
def test_an_event_is_as_late_as_the_gaps_before_it(made: Path) -> None:
    for split in ("train", "dev", "test"):
        content = pickle.loads((made / f"{split}.pkl").read_bytes())
        first = content[split][0]
        assert first[-1]["time_since_start"] == pytest.approx(sum(event["time_since_last_event"] for event in first))
        assert max(event["type_event"] for sequence in content[split] for event in sequence) < content["dim_process"]


@pytest.mark.parametrize("made", ["chains"], indirect=True)
def test_a_protein_has_four_atoms_for_each_letter_and_is_in_one_part(made: Path) -> None:
    chains = [json.loads(line) for line in (made / "chain_set.jsonl").read_text().splitlines()]
    for chain in chains[::50]:
        assert {len(places) for places in chain["coords"].values()} == {len(chain["seq"])}
    splits = json.loads((made / "chain_set_splits.json").read_text())
    assert sorted(name for names in splits.values() for name in names) == sorted(chain["name"] for chain in chains)


@pytest.mark.parametrize("made", ["small_molecules"], indirect=True)
def test_a_molecule_has_as_many_charges_as_atoms(made: Path) -> None:
    for split in ("train", "valid", "test"):
        content = np.load(made / f"{split}.npz")
        assert ((content["charges"] > 0).sum(axis=1) == content["num_atoms"]).all()
        assert (content["positions"][content["charges"] == 0] == 0).all()


@pytest.mark.parametrize("made", ["cifar_batches"], indirect=True)
def test_a_picture_has_a_label_and_a_label_a_name(made: Path) -> None:
    batches = made / "cifar-10-batches-py"
    names = pickle.loads((batches / "batches.meta").read_bytes())["label_names"]
    for name in (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"):
        content = pickle.loads((batches / name).read_bytes())
        assert content["data"].shape == (len(content["labels"]), 3072)
        assert max(content["labels"]) < len(names)


@pytest.mark.parametrize("made", ["shapes"], indirect=True)
def test_every_shape_of_the_split_has_its_points(made: Path) -> None:
    split = json.loads((made / "split.json").read_text())
    names = [(kind, form, name) for kind, forms in split.items() for form in forms for name in forms[form]]
    assert {made.joinpath("SdfSamples", *name).with_suffix(".npz") for name in names} == set(made.rglob("*.npz"))


@pytest.mark.parametrize("made", ["few_callbacks"], indirect=True)
def test_the_stand_in_for_keras_keeps_figures(made: Path) -> None:
    program = (
        "from tensorflow.python.keras.callbacks import CallbackList, History\n"
        "history = History()\nkept = CallbackList([history])\nkept.on_train_begin()\n"
        "for epoch in (0, 1):\n    kept.on_epoch_end(epoch, {'loss': epoch})\n"
        "print(history.history)\n"
    )
    assert printed_in(made, "-c", program) == "{'loss': [0, 1]}\n"


def test_the_stand_in_for_torchaudio_reads_what_was_written(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    for name in ("utterances", "wave_reader"):
        data.MAKERS[name](tmp_path / name)
    program = "import torchaudio; samples, rate = torchaudio.load('../utterances/0.wav'); print(*samples.shape, rate)"
    assert printed_in(tmp_path / "wave_reader", "-c", program) == "1 20480 22050\n"


@pytest.mark.parametrize("made", ["tongues"], indirect=True)
def test_a_word_of_the_dictionary_has_a_vector_in_its_language(made: Path) -> None:
    words = {}
    for language in ("en", "es"):
        head, *lines = (made / f"{language}.txt").read_text().splitlines()
        assert head == f"{len(lines)} {len(lines[0].split()) - 1}"
        words[language] = {line.split()[0] for line in lines}
    for pair in (made / "dictionary.txt").read_text().splitlines():
        one, other = pair.split()
        assert one in words["en"]
        assert other in words["es"]


@pytest.mark.skipif(find_spec("PIL") is None, reason="pictures need Pillow")
@pytest.mark.parametrize("made", ["faces"], indirect=True)
def test_the_stand_in_for_mxnet_reads_the_pairs_of_faces(made: Path) -> None:
    pairs, same = pickle.loads((made / "people/lfw.bin").read_bytes())
    assert len(pairs) == 2 * len(same)
    program = (
        "import pickle\nimport mxnet\nfrom mxnet import ndarray\n"
        "pairs, _ = pickle.load(open('people/lfw.bin', 'rb'))\n"
        "picture = ndarray.transpose(mxnet.image.imdecode(pairs[0]), axes=(2, 0, 1))\n"
        "print(*picture.shape, (ndarray.flip(data=picture, axis=2).asnumpy()[..., 0] == picture[..., -1]).all())\n"
    )
    assert printed_in(made, "-c", program) == "3 112 112 True\n"


def test_a_robot_has_a_picture_for_each_move(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    data.MAKERS["robot"](tmp_path / "robot")
    with h5py.File(tmp_path / "robot/episodes/episode_7.hdf5") as file:
        assert len(file["observations/images/top"]) == len(file["action"]) == len(file["observations/qpos"])


@pytest.mark.parametrize("made", ["few_datasets"], indirect=True)
def test_the_stand_in_for_datasets_gives_texts_by_name_and_by_number(made: Path) -> None:
    program = (
        "from datasets import load_dataset\ntexts = load_dataset('wikitext', 'raw', split='train')\n"
        "print(texts['text'] == texts['sentence'], texts['text'][3] == texts[3]['text'], len(texts))"
    )
    assert printed_in(made, "-c", program) == "True True 60\n"


@pytest.mark.parametrize("made", ["play"], indirect=True)
def test_a_game_of_pictures_ends_after_its_lives(made: Path) -> None:
    program = (
        "import gym\ngame = gym.Wrapper(gym.make('a'))\ngame.reset()\nturns = 1\n"
        "while not game.step(0)[2]:\n    turns += 1\n"
        "print(turns, game.unwrapped.lives(), game.reset().shape, game.lives())"
    )
    assert printed_in(made, "-c", program) == "360 0 (210, 160, 3) 3\n"


@pytest.mark.parametrize("made", ["ratings"], indirect=True)
def test_a_user_is_asked_for_one_thing_more_among_others(made: Path) -> None:
    known: dict[int, set[int]] = {}
    for line in (made / "ml-1m.train.rating").read_text().splitlines():
        user, item, *_ = map(int, line.split("\t"))
        known.setdefault(user, set()).add(item)
    for user, line in enumerate((made / "ml-1m.test.negative").read_text().splitlines()):
        pair, *others = line.split("\t")
        assert pair.startswith(f"({user},")
        assert len(others) == 99
        assert known[user].isdisjoint(map(int, others)) or user == max(known)


def test_a_notebook_becomes_one_script(tmp_path: Path) -> None:
    cells = [{"cell_type": kind, "source": [text]} for kind, text in (("code", "a = 2"), ("markdown", "text"))]
    (tmp_path / "pytorch-lora").mkdir()
    cells.append({"cell_type": "code", "source": ["print(a)"]})
    (tmp_path / "pytorch-lora/lora.ipynb").write_text(json.dumps({"cells": cells}))
    data.FROM_PROGRAMS["exported"](tmp_path / "out", tmp_path)
    assert printed_in(tmp_path / "out", "lora.py") == "2\n"


@pytest.mark.parametrize("made", ["mixtures"], indirect=True)
def test_a_mixture_is_as_long_as_its_voices(made: Path) -> None:
    for split in ("tr", "cv"):
        mixed, one, two = (json.loads((made / split / f"{kind}.json").read_text()) for kind in ("mix", "s1", "s2"))
        assert [length for _, length in mixed] == [length for _, length in one] == [length for _, length in two]


@pytest.mark.parametrize("made", ["cifar_files"], indirect=True)
def test_labels_of_pictures_are_those_of_their_kind(made: Path) -> None:
    ten = pickle.loads((made / "cifar-10-batches-py/test_batch").read_bytes())
    hundred = pickle.loads((made / "cifar-100-python/train").read_bytes())
    assert (max(ten["labels"]), max(hundred["fine_labels"])) == (9, 99)
    assert hundred["data"].shape == (5000, 3072)


@pytest.mark.parametrize("made", ["walker"], indirect=True)
def test_the_game_of_noise_ends_the_program(made: Path) -> None:
    program = (
        "import numpy\nimport gym\ngame = gym.make('any')\ngame.reset()\n"
        "for step in range(gym.STEPS):\n    game.step(numpy.zeros(6))\n"
        "print(step, flush=True)\ngame.step(numpy.zeros(6))\nprint('not reached')"
    )
    assert printed_in(made, "-c", program) == "11999\n"


def test_the_stand_in_for_torchtext_fills_sentences_up(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    data.MAKERS["few_texts"](tmp_path / "few_texts")
    program = (
        "import pickle\nfrom torchtext.data import BucketIterator, Dataset\n"
        "content = pickle.load(open('sentences.pkl', 'rb'))\n"
        "batches = BucketIterator(Dataset(content['test'], content['vocab']), 16, 'cpu')\n"
        "lengths = [(max(len(one.src) for one in content['test']) + 2, 8)]\n"
        "print(len(batches), [tuple(batch.src.shape) for batch in batches][-1:] == lengths)\n"
    )
    assert printed_in(tmp_path / "few_texts", "-c", program) == "3 True\n"


@pytest.mark.parametrize("made", ["small_vae"], indirect=True)
def test_the_stand_in_for_diffusers_encodes_a_picture_in_an_eighth_of_its_size(made: Path) -> None:
    pytest.importorskip("torch")
    program = (
        "import torch\nfrom diffusers.models import AutoencoderKL\n"
        "coded = AutoencoderKL.from_pretrained('any').encode(torch.zeros(2, 3, 64, 64)).latent_dist.sample()\n"
        "print(*coded.shape)"
    )
    assert printed_in(made, "-c", program) == "2 4 8 8\n"


@pytest.mark.parametrize("made", ["classic_starts"], indirect=True)
def test_a_start_runs_a_program_without_its_assertions(made: Path) -> None:
    pytest.importorskip("torch")
    for start in made.glob("*.py"):
        compile(start.read_text(), start.name, "exec")
    (made / "program.py").write_text("import sys\nassert False\nprint(__name__, *sys.argv)")
    assert printed_in(made, "old_torch.py", "program.py", "one") == "__main__ program.py one\n"


@pytest.mark.parametrize("made", ["journey_starts"], indirect=True)
def test_a_start_gives_the_spectra_that_pytorch_gave(made: Path) -> None:
    pytest.importorskip("torch")
    for start in made.glob("*.py"):
        compile(start.read_text(), start.name, "exec")
    (made / "program.py").write_text(
        "import torch\nwindow = torch.hann_window(16)\n"
        "print(*torch.stft(torch.rand(1, 64), 16, hop_length=16, window=window, center=False).shape)"
    )
    assert printed_in(made, "old_spectra.py", "program.py") == "1 9 4 2\n"


@pytest.mark.parametrize("made", ["journey_libraries"], indirect=True)
def test_the_stand_in_for_faiss_finds_the_nearest(made: Path) -> None:
    pytest.importorskip("torch")
    program = (
        "import faiss, faiss.contrib.torch_utils, torch\nrows = torch.rand(1200, 4)\nindex = faiss.IndexFlatL2(4)\n"
        "index.add(rows)\n_, places = index.search(rows[100:] + 1e-4, 1)\n"
        "print((places[:, 0] == torch.arange(100, 1200)).all().item(), *places.shape)"
    )
    assert printed_in(made, "-c", program) == "True 1100 1\n"


@pytest.mark.parametrize("made", ["recitals"], indirect=True)
def test_a_list_of_readings_names_the_files_beside_it(made: Path) -> None:
    lines = [line for split in ("training", "validation") for line in (made / f"{split}.txt").read_text().splitlines()]
    assert {made / f"{line.split('|')[0]}.wav" for line in lines} == set(made.glob("*.wav"))


def test_a_script_has_no_line_that_only_a_notebook_understands(tmp_path: Path) -> None:
    lines = ["!pip install one\n", "if True:\n", "    %pip install two\n", "print(5 % 3)"]
    cell = {"cell_type": "code", "source": lines}
    (tmp_path / "one.ipynb").write_text(json.dumps({"cells": [cell]}))
    write_script(tmp_path / "one.ipynb", tmp_path / "out/one.py")
    assert printed_in(tmp_path / "out", "one.py") == "2\n"


@pytest.mark.parametrize("made", ["census"], indirect=True)
def test_a_line_of_the_census_has_as_many_values_as_titles(made: Path) -> None:
    lines = (made / "census-income.csv").read_text().splitlines()
    assert {line.count(", ") for line in lines} == {14}


@pytest.mark.parametrize("made", ["answers"], indirect=True)
def test_two_answers_are_to_one_question(made: Path) -> None:
    for line in (made / "test.jsonl").read_text().splitlines():
        texts = json.loads(line)
        questions = {texts[kind].rpartition("\n\nAssistant:")[0] for kind in ("chosen", "rejected")}
        assert len(questions) == 1


@pytest.mark.parametrize("made", ["edits"], indirect=True)
def test_events_come_one_after_the_other_and_each_page_is_edited(made: Path) -> None:
    rows = [line.split(",") for line in (made / "wikipedia.csv").read_text().splitlines()[1:]]
    times = [float(row[2]) for row in rows]
    assert times == sorted(times)
    assert {int(row[1]) for row in rows} == set(range(100))


@pytest.mark.skipif(find_spec("PIL") is None, reason="pictures need Pillow")
@pytest.mark.parametrize("made", ["rotations"], indirect=True)
def test_what_is_seen_of_a_ball_is_its_surface(made: Path) -> None:
    image = pytest.importorskip("PIL.Image")

    for view in json.loads((made / "info.json").read_text())["images"]:
        far = np.asarray(image.open(made / view["rgb"].replace("rgb", "depth"))) / 255 * view["max_depth"]
        seen = np.asarray(image.open(made / view["rgb"].replace("rgb", "alpha"))) == 255
        rows, columns = np.nonzero(seen)
        pixels = np.stack([columns, rows, np.ones_like(rows)])
        points = np.linalg.inv(view["intrinsic"]) @ pixels * far[seen]
        turned = np.diag([1, -1, -1]) @ points
        pose = np.array(view["pose"])
        places = pose[:3, :3] @ turned + pose[:3, 3:]
        assert np.abs(np.linalg.norm(places, axis=0) - 0.6).max() < 0.05


def test_a_completer_has_a_row_for_each_of_its_words(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    made = tmp_path / "completer"
    data.MAKERS["completer"](made)
    words = [line.split()[0] for line in (made / "tokenizer.model").read_text().splitlines()]
    weights = torch.load(made / "consolidated.00.pth")
    rows = len(weights["tok_embeddings.weight"])
    assert len(set(words)) + 256 == rows == json.loads((made / "params.json").read_text())["vocab_size"]


@pytest.mark.parametrize("made", ["tour_starts"], indirect=True)
def test_a_start_ends_a_program_before_its_fifteenth_step(made: Path) -> None:
    pytest.importorskip("torch")
    (made / "program.py").write_text(
        "import itertools, torch\noptimizer = torch.optim.AdamW([torch.ones(1, requires_grad=True)])\n"
        "for step in itertools.count(1):\n    optimizer.zero_grad()\n    print(step)"
    )
    assert printed_in(made, "fourteen_steps.py", "program.py").split()[-1] == "14"
    program = (
        "import torch\nfrom simple_knn._C import distCUDA2\nprint(distCUDA2(torch.arange(8.0)[:, None])[3].item())"
    )
    assert printed_in(made, "-c", program) == "2.0\n"


@pytest.mark.parametrize("made", ["excursion_libraries"], indirect=True)
def test_the_way_through_a_table_is_its_best(made: Path) -> None:
    (made / "numba.py").write_text("def njit(function):\n    return function\n")
    program = (
        "import core, numpy as np\nvalue = np.array([[[1, 0], [0, 9], [0, 2]]], np.float32)\n"
        "way = np.zeros((1, 3, 2), np.int32)\ncore.maximum_path_c(way, value, [3], [2])\nprint(way[0].tolist())"
    )
    assert printed_in(made, "-c", program) == "[[1, 0], [0, 1], [0, 1]]\n"


@pytest.mark.parametrize("made", ["excursion_starts"], indirect=True)
def test_a_schedule_may_be_asked_to_tell(made: Path) -> None:
    pytest.importorskip("torch")
    (made / "program.py").write_text(
        "import torch\nfrom torch.optim import SGD\nfrom torch.optim.lr_scheduler import LRScheduler\n\n\n"
        "class Old(LRScheduler):\n    def __init__(self, optimizer):\n        super().__init__(optimizer, -1, False)\n"
        "\n    def get_lr(self):\n        return [0.5]\n\n\n"
        "print(Old(SGD([torch.ones(1, requires_grad=True)], lr=1.0)).get_last_lr())"
    )
    assert printed_in(made, "old_schedules.py", "program.py") == "[0.5]\n"
