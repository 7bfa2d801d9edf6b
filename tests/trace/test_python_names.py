import pytest

from syncscope.trace.tables.python_names import normalise, python_name


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("train.py(3): step", ("train.py", 3, "step")),
        ("/home/me/my project (2)/train.py(12): <lambda>", ("/home/me/my project (2)/train.py", 12, "<lambda>")),
        ("<string>(1): <module>", ("<string>", 1, "<module>")),
        ("<built-in method item of Tensor object at 0x7f3ab849d0f0>", ("<built-in>", -1, "item")),
        ("<built-in method  of PyCapsule object at 0x7d673b30a700>", ("<built-in>", -1, "")),
        ("<built-in function len>", ("<built-in>", -1, "len")),
        ("<method 'append' of 'list' objects>", ("<built-in>", -1, "append")),
        ("nn.Module: Linear_0", ("<nn.Module>", -1, "Linear_0")),
        ("something else", ("<unknown>", -1, "something else")),
    ],
)
def test_names_of_python_rows_are_taken_apart(name, parts):
    assert python_name(name) == parts


@pytest.mark.parametrize(
    ("file", "place"),
    [
        ("train.py", "train.py"),
        ("src/model/layers.py", "src/model/layers.py"),
        ("/opt/venv/lib/python3.11/site-packages/torch/_tensor.py", "<site-packages>/torch/_tensor.py"),
        ("/usr/lib/python3/dist-packages/numpy/core.py", "<site-packages>/numpy/core.py"),
        ("C:\\Users\\me\\venv\\Lib\\site-packages\\torch\\_tensor.py", "<site-packages>/torch/_tensor.py"),
        ("/usr/lib/python3.11/threading.py", "<python>/threading.py"),
        ("/opt/python/lib/python3.13t/threading.py", "<python>/threading.py"),
        ("threading.py", "<python>/threading.py"),
        ("json/decoder.py", "<python>/json/decoder.py"),
        ("torch/nn/modules/module.py", "<site-packages>/torch/nn/modules/module.py"),
        ("transformers/models/qwen2/modeling_qwen2.py", "<site-packages>/transformers/models/qwen2/modeling_qwen2.py"),
        ("torchlike/model.py", "torchlike/model.py"),
        ("<frozen importlib._bootstrap>", "<python>/importlib/_bootstrap.py"),
        ("/tmp/torchinductor_root/ob/cobh.py", "<torchinductor>/ob/cobh.py"),
    ],
)
def test_files_of_libraries_and_of_python_are_marked(file, place):
    assert normalise(file) == place
