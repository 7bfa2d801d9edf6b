"""As much of some libraries as the public programs use of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path


def make_byte_tokenizer(folder: Path) -> None:
    """As much of tiktoken as the programs use, one token a byte: its vocabularies would be downloaded."""
    folder.mkdir()
    (folder / "tiktoken.py").write_text(
        "class Encoding:\n    eot_token = 50256\n\n"
        "    def encode(self, text, **options):\n        return list(text.encode())\n\n"
        "    def decode(self, tokens):\n"
        "        return bytes(token % 256 for token in tokens).decode(errors='replace')\n\n\n"
        "def get_encoding(name):\n    return Encoding()\n"
    )


def make_one_process(folder: Path) -> None:
    """As much of mpi4py and blobfile as a program of one process on one machine uses."""
    (folder / "mpi4py").mkdir(parents=True)
    (folder / "mpi4py/__init__.py").write_text("")
    (folder / "mpi4py/MPI.py").write_text(
        "class World:\n    rank, size = 0, 1\n\n    def Get_rank(self):\n        return 0\n\n"
        "    def Get_size(self):\n        return 1\n\n"
        "    def bcast(self, value=None, root=0):\n        return value\n\n\nCOMM_WORLD = World()\n"
    )
    (folder / "blobfile.py").write_text(
        "from os import listdir\nfrom os.path import basename, dirname, exists, isdir, join\n\nBlobFile = open\n"
    )


def make_few_polars(folder: Path) -> None:
    """As much of polars as ultralytics reads its own results with: the whole is too large to carry around."""
    folder.mkdir()
    (folder / "polars.py").write_text(
        "class Table:\n    def to_dict(self, **options):\n        return {}\n\n\n"
        "def read_csv(*args, **options):\n    return Table()\n"
    )


def make_no_cloud(folder: Path) -> None:
    """What a program imports of boto3 for files in a cloud, where its files are none."""
    folder.mkdir()
    (folder / "boto3.py").write_text("client = None\n")


def make_silent_loggers(folder: Path) -> None:
    """As much of tensorboard_logger and visdom as programs import of them, which does nothing."""
    folder.mkdir()
    (folder / "tensorboard_logger.py").write_text(
        "class Logger:\n    def __init__(self, logdir, **options):\n        pass\n\n"
        "    def log_value(self, name, value, step=None):\n        pass\n"
    )
    (folder / "visdom.py").write_text("Visdom = None\n")


def make_old_gym(folder: Path) -> None:
    """As much of gym's old interface as a program uses, with gymnasium's environments behind it."""
    folder.mkdir()
    (folder / "gym.py").write_text(
        "import gymnasium\nfrom gymnasium import spaces\n\n\n"
        "class logger:\n    def set_level(level):\n        pass\n\n\n"
        "class Environment:\n    def __init__(self, name):\n        self.new = gymnasium.make(name)\n"
        "        self.next_seed = None\n        self.action_space = self.new.action_space\n"
        "        self.observation_space = self.new.observation_space\n"
        "        self._max_episode_steps = self.new.spec.max_episode_steps\n\n"
        "    def seed(self, seed):\n        self.next_seed = seed\n\n"
        "    def reset(self):\n        state, _ = self.new.reset(seed=self.next_seed)\n"
        "        self.next_seed = None\n        return state\n\n"
        "    def step(self, action):\n        state, reward, ended, cut, info = self.new.step(action)\n"
        "        return state, reward, ended or cut, info\n\n"
        "    def close(self):\n        self.new.close()\n\n\n"
        "make = Env = Environment\n\n\n"
        "class Wrapper:\n    def __init__(self, env):\n        self.env = env\n\n"
        "    def __getattr__(self, name):\n        return getattr(self.__dict__['env'], name)\n\n\n"
        "class TransformObservation(Wrapper):\n    def __init__(self, env, change):\n"
        "        super().__init__(env)\n        self.change = change\n\n"
        "    def reset(self):\n        return self.change(self.env.reset())\n\n"
        "    def step(self, action):\n        state, *others = self.env.step(action)\n"
        "        return self.change(state), *others\n\n\n"
        "class wrappers:\n    TransformObservation = TransformObservation\n"
    )


def make_no_window(folder: Path) -> None:
    """As much of OpenCV as a game shows itself with: there is no window."""
    folder.mkdir()
    (folder / "cv2.py").write_text(
        "FONT_HERSHEY_DUPLEX = 0\n\n\ndef putText(*args, **options):\n    pass\n\n\nimshow = waitKey = putText\n"
    )


def make_no_drawings(folder: Path) -> None:
    """As much of matplotlib as a program imports that draws nothing."""
    (folder / "matplotlib").mkdir(parents=True)
    (folder / "matplotlib/__init__.py").write_text("")
    (folder / "matplotlib/pyplot.py").write_text("")


def make_no_storage(folder: Path) -> None:
    """As much of boto3 as a program imports that downloads nothing."""
    (folder / "botocore").mkdir(parents=True)
    (folder / "boto3.py").write_text("")
    (folder / "botocore/__init__.py").write_text("")
    (folder / "botocore/exceptions.py").write_text("class ClientError(Exception):\n    pass\n")


def make_no_filters(folder: Path) -> None:
    """As much of scikit-image and ffmpeg as a program imports that neither filters pictures nor films them."""
    (folder / "skimage").mkdir(parents=True)
    (folder / "skimage/__init__.py").write_text("")
    (folder / "skimage/filters.py").write_text("gaussian = None\n")
    (folder / "ffmpeg.py").write_text("")


def make_wave_reader(folder: Path) -> None:
    """As much of torchaudio as a program reads sounds with: the whole asks for another library."""
    folder.mkdir()
    (folder / "torchaudio.py").write_text(
        "import wave\n\nimport numpy\nimport torch\n\n\n"
        "def load(name):\n    with wave.open(name) as file:\n"
        "        samples = numpy.frombuffer(file.readframes(file.getnframes()), '<i2')\n"
        "    return torch.from_numpy(samples.astype('float32') / 32768)[None], file.getframerate()\n"
    )


def make_few_callbacks(folder: Path) -> None:
    """As much of Keras as a program keeps its figures in that trains by PyTorch."""
    package = folder / "tensorflow/python/keras"
    package.mkdir(parents=True)
    for name in (package, package.parent, package.parent.parent):
        (name / "__init__.py").write_text("")
    (package / "callbacks.py").write_text(
        "class History:\n    def __init__(self):\n        self.history = {}\n\n"
        "    def on_epoch_end(self, epoch, logs):\n        for name, value in logs.items():\n"
        "            self.history.setdefault(name, []).append(value)\n\n\n"
        "class CallbackList:\n    def __init__(self, callbacks):\n        self.callbacks = callbacks\n\n"
        "    def set_model(self, model):\n        self.model = model\n\n"
        "    def on_epoch_begin(self, *args):\n        pass\n\n"
        "    on_train_begin = on_train_end = on_epoch_begin\n\n"
        "    def on_epoch_end(self, epoch, logs):\n        for callback in self.callbacks:\n"
        "            callback.on_epoch_end(epoch, logs)\n\n\n"
        "class EarlyStopping:\n    pass\n\n\nclass ModelCheckpoint:\n    pass\n"
    )


def make_no_bert(folder: Path) -> None:
    """As much of an old transformers as a program imports whose model is none of BERT's."""
    (folder / "transformers").mkdir(parents=True)
    (folder / "transformers/__init__.py").write_text("BertModel = BertTokenizer = None\n")
    (folder / "transformers/modeling_bert.py").write_text("BertPooler = BertSelfAttention = None\n")


def make_old_speech(folder: Path) -> None:
    """As much of TensorFlow 1, librosa, matplotlib and NumPy as an old program of speech uses; figures are black."""
    for name in ("tensorflow", "librosa", "matplotlib"):
        (folder / name).mkdir(parents=True)
    (folder / "tensorflow/__init__.py").write_text(
        "from tensorboard.compat.tensorflow_stub import *  # for the writer of torch.utils.tensorboard\n"
        "from tensorboard.compat.tensorflow_stub import io\n\n\n"
        "class logging:\n    info = print\n\n\n"
        "class HParams:\n    def __init__(self, **values):\n        vars(self).update(values)\n\n"
        "    def parse(self, text):\n        for name, value in (one.split('=') for one in text.split(',')):\n"
        "            setattr(self, name, type(getattr(self, name))(value))\n\n"
        "    def values(self):\n        return vars(self)\n\n\n"
        "class contrib:\n    class training:\n        HParams = HParams\n"
    )
    (folder / "librosa/__init__.py").write_text("")
    (folder / "librosa/util.py").write_text(
        "import numpy\n\n\n"
        "def pad_center(data, size):\n    left = (size - len(data)) // 2\n"
        "    return numpy.pad(data, (left, size - len(data) - left))\n\n\n"
        "def tiny(data):\n    return numpy.finfo(data.dtype).tiny\n"
    )
    (folder / "librosa/filters.py").write_text(
        "import numpy\n\n\n"
        "def mel(rate, size, bands, low, high):\n"
        "    ends = 700 * (10 ** (numpy.linspace(*(2595 * numpy.log10(1 + numpy.array([low, high]) / 700)),"
        " bands + 2) / 2595) - 1)\n"
        "    up = (numpy.linspace(0, rate / 2, size // 2 + 1) - ends[:-1, None]) / numpy.diff(ends)[:, None]\n"
        "    down = 1 - up[1:]\n"
        "    return numpy.maximum(0, numpy.minimum(up[:-1], down)).astype('float32')\n"
    )
    (folder / "matplotlib/__init__.py").write_text(
        "import numpy\n\n\n"
        "def use(name):\n    numpy.fromstring = lambda data, dtype, sep: numpy.frombuffer(data, dtype)\n"
    )
    (folder / "matplotlib/pylab.py").write_text(
        "class Figure:\n    def tostring_rgb(self):\n        return bytes(3 * 60 * 40)\n\n"
        "    def get_width_height(self):\n        return 60, 40\n\n"
        "    def __getattr__(self, name):\n        return self\n\n"
        "    def __call__(self, *args, **options):\n        return self\n\n\n"
        "def subplots(**options):\n    return Figure(), Figure()\n\n\n"
        "xlabel = ylabel = tight_layout = close = colorbar = Figure()\n"
    )


def make_no_atari(folder: Path) -> None:
    """As much of gymnasium and ale_py as a program imports that plays nothing."""
    folder.mkdir()
    (folder / "ale_py.py").write_text("")
    (folder / "gymnasium.py").write_text("spaces = None\n")


def make_no_films(folder: Path) -> None:
    """As much of imageio and kornia as a program of views of a scene uses: pictures are kept, films are not."""
    folder.mkdir()
    (folder / "imageio.py").write_text(
        "from PIL import Image\n\n\n"
        "def imwrite(name, picture):\n    Image.fromarray(picture).save(name)\n\n\n"
        "def mimwrite(name, pictures, **options):\n    pass\n"
    )
    (folder / "kornia.py").write_text(
        "import torch\n\n\n"
        "def create_meshgrid(height, width, normalized_coordinates=True):\n"
        "    assert not normalized_coordinates\n"
        "    rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing='ij')\n"
        "    return torch.stack([columns, rows], dim=-1)[None].float()\n"
    )


def make_few_augmentations(folder: Path) -> None:
    """As much of albumentations as a program uses that only resizes its pictures."""
    folder.mkdir()
    (folder / "albumentations.py").write_text(
        "import cv2\nimport numpy\n\n\n"
        "class Compose:\n    def __init__(self, steps):\n        self.steps = steps\n\n"
        "    def __call__(self, image):\n        for step in self.steps:\n            image = step(image)\n"
        "        return {'image': image}\n\n\n"
        "class Resize:\n    def __init__(self, height, width, **options):\n        self.size = width, height\n\n"
        "    def __call__(self, image):\n        return cv2.resize(image, self.size)\n\n\n"
        "class Normalize:\n    def __init__(self, max_pixel_value, **options):\n        self.most = max_pixel_value\n\n"
        "    def __call__(self, image):\n        mean, deviation = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)\n"
        "        return ((image / self.most - mean) / deviation).astype(numpy.float32)\n"
    )


def make_starter(folder: Path) -> None:
    """``start.py PROGRAM ...`` runs a program with a name of old NumPy's; no sums of CIFAR's files are asked for."""
    folder.mkdir()
    (folder / "start.py").write_text(
        "import runpy\nimport sys\n\nimport numpy\nfrom torchvision.datasets import CIFAR10, CIFAR100\n\n"
        "numpy.Inf = numpy.inf\n"
        "for dataset in (CIFAR10, CIFAR100):\n"
        "    dataset.meta['md5'] = None\n"
        "    for files in (dataset.train_list, dataset.test_list):\n"
        "        files[:] = [[name, None] for name, _ in files]\n\n"
        'if __name__ == "__main__":\n'
        "    del sys.argv[0]\n"
        '    runpy.run_path(sys.argv[0], run_name="__main__")\n'
    )


def make_sound_loader(folder: Path) -> None:
    """As much of librosa as a program reads sounds with that have the rate it asks for."""
    folder.mkdir()
    (folder / "librosa.py").write_text(
        "import wave\n\nimport numpy\n\n\n"
        "def load(name, sr):\n    with wave.open(name) as file:\n"
        "        assert file.getframerate() == sr\n"
        "        samples = numpy.frombuffer(file.readframes(file.getnframes()), '<i2')\n"
        "    return samples.astype('float32') / 32768, sr\n"
    )


SUBSTITUTES: dict[str, Callable[[Path], None]] = {
    "byte_tokenizer": make_byte_tokenizer,
    "one_process": make_one_process,
    "few_polars": make_few_polars,
    "no_cloud": make_no_cloud,
    "silent_loggers": make_silent_loggers,
    "old_gym": make_old_gym,
    "no_window": make_no_window,
    "no_drawings": make_no_drawings,
    "no_storage": make_no_storage,
    "no_filters": make_no_filters,
    "wave_reader": make_wave_reader,
    "few_callbacks": make_few_callbacks,
    "no_bert": make_no_bert,
    "old_speech": make_old_speech,
    "no_atari": make_no_atari,
    "no_films": make_no_films,
    "few_augmentations": make_few_augmentations,
    "starter": make_starter,
    "sound_loader": make_sound_loader,
}
