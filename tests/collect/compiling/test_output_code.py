"""Inductor's own comments say which nodes a kernel computes, and the program's text is not taken for one."""

from __future__ import annotations

from types import SimpleNamespace

from syncscope.collect.compiling.output_code import is_backward, names_of_dynamo, read_kernels, sources_of
from syncscope.collect.sites.stacks import Line

FORWARD = """# AOT ID: ['0_forward']
import torch
# kernel path: /tmp/torchinductor_root/et/cetmwepq3j.py
# Topologically Sorted Source Nodes: [tanh, z], Original ATen: [aten.tanh, aten.mul]
# Source node to ATen node mapping:
#   tanh => tanh
#   z => mul
# Graph fragment:
#   %mul : Tensor "f32[128]"[num_users=4] = call_function[target=torch.ops.aten.mul.Tensor](args = (%tanh, 3))
#   return %mul
triton_poi_fused_mul_tanh_0 = async_compile.triton('triton_poi_fused_mul_tanh_0', '''
import triton
@triton.jit
def triton_poi_fused_mul_tanh_0(in_ptr0, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    tmp0 = tl.load(in_ptr0 + (x0), xmask)
''', device_str='cuda')

class Runner:
    def call(self, args):
        # Topologically Sorted Source Nodes: [linear], Original ATen: [aten.t, aten.addmm]
        extern_kernels.addmm(primals_2, primals_3, out=buf0)
        triton_poi_fused_mul_tanh_0.run(buf0, 1280, stream=stream0)
        # Topologically Sorted Source Nodes: [tanh, z], Original ATen: [aten.tanh, aten.mul]
        stream0 = get_raw_stream(0)
        triton_poi_fused_mul_tanh_0.run(buf1, 1280, stream=stream0)
        # Topologically Sorted Source Nodes: [tanh_1, z_1], Original ATen: [aten.tanh, aten.mul]
        stream0 = get_raw_stream(0)
        triton_poi_fused_mul_tanh_0.run(buf2, 1280, stream=stream0)
"""
"""As PyTorch 2.11 writes it, cut."""


def test_each_call_of_a_kernel_says_what_it_computes_there() -> None:
    kernel = "triton_poi_fused_mul_tanh_0"
    found = list(read_kernels(FORWARD))
    assert [one.kernel for one in found] == [kernel] * 3
    assert [one.nodes for one in found] == [("tanh", "z"), ("tanh", "z"), ("tanh_1", "z_1")]
    assert not is_backward(FORWARD)


def test_the_comment_of_earlier_versions_is_read_too() -> None:
    text = (
        "# Source Nodes: [add], Original ATen: [aten.add]\n"
        "triton_poi_fused_add_0 = async_compile.triton('triton_poi_fused_add_0', '''\n"
    )
    assert [(one.kernel, one.nodes) for one in read_kernels(text)] == [("triton_poi_fused_add_0", ("add",))]


def test_a_kernel_of_the_programs_own_says_where_it_is_written() -> None:
    text = "# Original path: /home/me/my kernels.py:12\nadd_kernel_0 = async_compile.triton('add_kernel', '''\n"
    (one,) = read_kernels(text)
    assert (one.kernel, one.written) == ("add_kernel", Line("/home/me/my kernels.py", 12, "add_kernel"))


def test_of_a_backward_a_name_that_stands_for_itself_may_be_any_nodes() -> None:
    text = (
        "# AOT ID: ['0_backward']\n"
        "# Source node to ATen node mapping:\n"
        "#   cross_entropy => full_default, sub\n"
        "#   mul_5 => mul_5\n"
        "#   z_3 => sin_2\n"
    )
    assert is_backward(text)
    assert names_of_dynamo(text) == {"cross_entropy", "z_3"}


def test_a_node_is_called_by_the_node_of_dynamo_that_it_comes_from() -> None:
    def node(name: str, stack: str | None, origin: object = None) -> SimpleNamespace:
        meta = {"stack_trace": stack} | ({"from_node": [origin]} if origin else {})
        return SimpleNamespace(name=name, meta=meta)

    nodes = [
        node("mul", "a", SimpleNamespace(name="z")), node("sub", "b", ("loss", None)), node("mm_2", "c"),
        node("unknown", None),
    ]  # fmt: skip
    assert sources_of(nodes) == {"z": "a", "loss": "b", "mm_2": "c"}
