"""What to write instead, as code: what waits and what does not, in general and not the reader's own lines."""

from __future__ import annotations

import inspect
from functools import cache

import msgspec

from syncscope.rules import RULES
from syncscope.rules.fixes import FIXES


class Example(msgspec.Struct, frozen=True, kw_only=True):
    """Two pieces of Python."""

    before: str
    after: str


PAIRS: dict[str, tuple[str, str]] = {
    "SYN102": (
        "total += loss.item()",
        """
        total += loss.detach()      # stays on the device
        if step % 100 == 0:
            print(total.item())     # one wait in a hundred steps
        """,
    ),
    "SYN104": ("print(loss, norms)", "if step % 100 == 0:\n    print(torch.stack([loss, norm]).cpu())"),
    "SYN105 event": (
        """
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
        """,
        """
        end.record()
        pairs.append((start, end))
        # after the loop
        torch.cuda.synchronize()
        times = [a.elapsed_time(b) for a, b in pairs]
        """,
    ),
    "SYN105 stream": (
        "side.synchronize()\nuse(y)",
        "torch.cuda.current_stream().wait_stream(side)   # the device waits\nuse(y)",
    ),
    "SYN106 empty_cache": ("optimizer.step()\ntorch.cuda.empty_cache()", "optimizer.step()"),
    "SYN110 barrier()|c10d::barrier": ("dist.barrier()\ndist.all_reduce(x)", "dist.all_reduce(x)"),
    "SYN110": (
        "dist.all_gather_object(found, metrics)",
        "dist.all_gather_into_tensor(found, metrics)   # a tensor of known size",
    ),
    "CPY202": (
        "x = batch.pin_memory().to('cuda', non_blocking=True)",
        """
        loader = DataLoader(data, pin_memory=True)
        x = batch.to('cuda', non_blocking=True)
        """,
    ),
    "CPY203 DtoH": (
        "values = [loss.cpu() for loss in losses]",
        "values = torch.stack(losses).to('cpu', non_blocking=True)",
    ),
    "CPY203": (
        "parts = [part.to('cuda') for part in parts]",
        """
        torch.stack(parts, out=pinned)   # made once with pin_memory=True
        parts = pinned.to('cuda', non_blocking=True).unbind()
        """,
    ),
    "SYN101|CPY201 many": (
        "parts = [part.to('cuda') for part in parts]",
        """
        torch.stack(parts, out=pinned)   # made once with pin_memory=True
        parts = pinned.to('cuda', non_blocking=True).unbind()
        """,
    ),
    "CPY204": (
        "y = torch.from_numpy(np.clip(x.cpu().numpy(), 0, 1)).cuda()",
        "y = x.clamp(0, 1)",
    ),
    "torch/amp/grad_scaler.py get_scale": (
        "log(scaler.get_scale())",
        "if step % 100 == 0:\n    log(scaler.get_scale())",
    ),
    "torch/amp/grad_scaler.py": (
        "optimizer = AdamW(params)\nscaler.step(optimizer)",
        "optimizer = AdamW(params, fused=True)\nscaler.step(optimizer)",
    ),
    "torch/nn/utils/clip_grad.py": (
        "clip_grad_norm_(params, 1.0, error_if_nonfinite=True)",
        "norm = clip_grad_norm_(params, 1.0)\nif step % 100 == 0:\n    check(norm.item())",
    ),
    "torch/distributions/distribution.py": (
        "Normal(mean, std).rsample()",
        "Normal(mean, std, validate_args=False).rsample()",
    ),
    "torch/optim/optimizer.py _get_value": (
        "Adam(params, lr=torch.tensor(1e-3, device='cuda'))",
        "Adam(params, lr=1e-3)",
    ),
    "aten::repeat_interleave": (
        "torch.repeat_interleave(x, repeats)",
        "torch.repeat_interleave(x, repeats, output_size=total)",
    ),
    "aten::bincount": (
        "counts = torch.bincount(x)",
        "counts = torch.zeros(n, dtype=x.dtype, device='cuda').scatter_add_(0, x, torch.ones_like(x))",
    ),
    "aten::masked_select": (
        "loss = x.masked_select(mask).mean()",
        "loss = (x * mask).sum() / mask.sum()",
    ),
    "aten::index_put|aten::index_put_|aten::_index_put_impl_ aten::nonzero": (
        "x[mask] = values",
        "x = torch.where(mask, values, x)",
    ),
    "aten::index aten::nonzero": (
        "loss = x[mask].mean()",
        "loss = torch.where(mask, x, 0).sum() / mask.sum()",
    ),
    "aten::where aten::nonzero": (
        "rows, = torch.where(x > 0)\ny = x[rows].sum()",
        "y = torch.where(x > 0, x, 0).sum()",
    ),
    "aten::nonzero|aten::nonzero_numpy|aten::argwhere": (
        "rows = mask.nonzero()",
        "rows = torch.nonzero_static(mask, size=most)",
    ),
    "aten::one_hot": ("one_hot(classes)", "one_hot(classes, num_classes=10)"),
    "aten::histc": ("torch.histc(x, bins=10)", "torch.histc(x, bins=10, min=0, max=1)"),
    "aten::normal": ("torch.normal(mean, std)", "mean + std * torch.randn_like(std)"),
    "aten::masked_fill|aten::masked_fill_": ("x.masked_fill_(mask, value)", "x = torch.where(mask, value, x)"),
    "aten::index_fill|aten::index_fill_": (
        "x.index_fill_(0, rows, torch.tensor(0.0))",
        "x.index_fill_(0, rows, 0.0)",
    ),
    "aten::linalg_inv|aten::inverse": (
        "y = torch.linalg.inv(x)",
        "y, info = torch.linalg.inv_ex(x)   # info says later whether it failed",
    ),
    "aten::linalg_cholesky|aten::cholesky": (
        "y = torch.linalg.cholesky(x)",
        "y, info = torch.linalg.cholesky_ex(x)   # info says later whether it failed",
    ),
    "aten::linalg_solve": ("y = torch.linalg.solve(a, b)", "y, info = torch.linalg.solve_ex(a, b)"),
    "aten::linalg_lu_factor": (
        "lu, pivots = torch.linalg.lu_factor(x)",
        "lu, pivots, info = torch.linalg.lu_factor_ex(x)",
    ),
    "aten::linalg_ldl_factor": (
        "ld, pivots = torch.linalg.ldl_factor(x)",
        "ld, pivots, info = torch.linalg.ldl_factor_ex(x)",
    ),
    "aten::equal": ("same = torch.equal(a, b)", "same = (a == b).all()   # read it later"),
    "aten::allclose": ("same = torch.allclose(a, b)", "same = torch.isclose(a, b).all()   # read it later"),
    "aten::is_nonzero": (
        "if torch.isnan(loss):\n    break",
        """
        bad |= torch.isnan(loss)
        if step % 100 == 0 and bad:
            break
        """,
    ),
    "tensor()|as_tensor() aten::item": ("torch.tensor([a, b])", "torch.stack([a, b])"),
    "[] aten::item": ("row = x[i]", "row = x.index_select(0, i.view(1)).squeeze(0)"),
    "tensor()|as_tensor()|asarray()|new_tensor()|aten::lift_fresh": (
        "scale = torch.tensor(0.5, device='cuda')",
        "scale = torch.full((), 0.5, device='cuda')",
    ),
    "SYN101|CPY201 aten::index|aten::index_put|aten::index_put_|aten::_index_put_impl_ aten::copy_": (
        "for batch in loader:\n    y = x[order]             # order is on the host",
        "order = order.to('cuda')     # once\nfor batch in loader:\n    y = x[order]",
    ),
    "SYN101 DtoH": (
        "results.append(y.cpu())",
        """
        kept = y.to('cpu', non_blocking=True)
        ready = torch.cuda.Event()
        ready.record()
        results.append((kept, ready))   # ready.synchronize() just before kept is read
        """,
    ),
    "SYN101 pinned": ("x = pinned.to('cuda')", "x = pinned.to('cuda', non_blocking=True)"),
    "SYN101": (
        "loader = DataLoader(data)\nx = batch.to('cuda')",
        "loader = DataLoader(data, pin_memory=True)\nx = batch.to('cuda', non_blocking=True)",
    ),
    "CPY201 HtoD": (
        "loader = DataLoader(data)\nx = batch.to('cuda')",
        "loader = DataLoader(data, pin_memory=True)\nx = batch.to('cuda', non_blocking=True)",
    ),
    "CPY201": (
        "y.copy_(x, non_blocking=True)           # y is pageable",
        """
        pinned.copy_(x, non_blocking=True)   # made once with pin_memory=True
        ready.record()                       # ready.synchronize() before pinned is read
        """,
    ),
    "torchvision::nms": (
        "kept = [nms(b, s, 0.5) for b, s in zip(boxes, scores)]",
        "kept = batched_nms(torch.cat(boxes), torch.cat(scores), image, 0.5)",
    ),
}
"""Needle of ``FIXES`` → before and after. Fixes without one have the rule's own Bad and Good."""


@cache
def _by_sentence() -> dict[str, Example]:
    return {
        FIXES[needle]: Example(before=_code(before), after=_code(after))
        for needle, (before, after) in reversed(PAIRS.items())
    }


def example(code: str, fix: str) -> Example | None:
    """The example of a finding's fix; else what the rule's documentation calls bad and good; ``None`` without these."""
    found = _by_sentence().get(fix)
    if found is not None:
        return found
    doc = next((rule.doc for rule in RULES if rule.code == code), "")
    bad, good = _section(doc, "Bad:"), _section(doc, "Good:")
    return Example(before=bad, after=good) if bad and good else None


def _section(doc: str, head: str) -> str:
    """The indented lines under a line of a docstring."""
    lines = doc.partition(f"\n{head}\n")[2].split("\n")
    end = next((i for i, line in enumerate(lines) if line and not line.startswith(" ")), len(lines))
    return _code("\n".join(lines[:end]))


def _code(text: str) -> str:
    """Without the indentation that all lines share, and without blank ones around."""
    return inspect.cleandoc(f"\n{text}")
