"""The advice that several rules share on what waits inside of an op or of PyTorch's own Python code.

A rule's ``advice`` is a sequence of these sections and of its own entries, and the first entry that fits is given.
"""

from __future__ import annotations

from syncscope.advice.entry import Advice, Section
from syncscope.advice.new_tensors import NEW_TENSORS

# Ops that go by several names.
UNIQUE = "|".join(
    f"aten::{name}"
    for name in ("unique", "_unique", "_unique2", "unique_dim", "unique_consecutive", "unique_dim_consecutive")
)
SPECTRAL = "|".join(
    f"aten::linalg_{name}" for name in ("svd", "svdvals", "eigh", "eigvalsh", "eig", "eigvals", "lstsq")
)
WRITE = "aten::index_put|aten::index_put_|aten::_index_put_impl_"

SCALER_STEP = "torch.amp::GradScaler.step"
"""What a read of a gradient scaler is called where only ops are known."""

DISTRIBUTIONS = frozenset({
    "Bernoulli", "Beta", "Binomial", "Categorical", "Cauchy", "Chi2", "ContinuousBernoulli", "Dirichlet", "Exponential",
    "FisherSnedecor", "Gamma", "GeneralizedPareto", "Geometric", "Gumbel", "HalfCauchy", "HalfNormal", "InverseGamma",
    "Kumaraswamy", "LKJCholesky", "Laplace", "LogNormal", "LogisticNormal", "LowRankMultivariateNormal",
    "MixtureSameFamily", "Multinomial", "MultivariateNormal", "NegativeBinomial", "Normal", "OneHotCategorical",
    "OneHotCategoricalStraightThrough", "Pareto", "Poisson", "RelaxedBernoulli", "RelaxedOneHotCategorical", "StudentT",
    "Uniform", "VonMises", "Weibull", "Wishart",
})  # fmt: skip
"""Classes of torch.distributions that take ``validate_args``."""

PYTORCH_CODE: Section = (
    Advice(
        "torch/amp/grad_scaler.py state_dict",
        "Call the scaler's state_dict() only where a checkpoint is written: it reads the scale and the growth tracker "
        "back, a wait each.",
    ),
    Advice(
        "torch/amp/grad_scaler.py get_scale",
        "Call get_scale() only where it is logged: it reads the scale back.",
        before="log(scaler.get_scale())",
        after="""
        if step % 100 == 0:
            log(scaler.get_scale())
        """,
    ),
    Advice(
        f"torch/amp/grad_scaler.py|{SCALER_STEP}",
        "Use the optimizer's fused=True, which checks for inf on the device, or bfloat16 without a scaler.",
        before="""
        optimizer = AdamW(params)
        scaler.step(optimizer)
        """,
        after="""
        optimizer = AdamW(params, fused=True)
        scaler.step(optimizer)
        """,
    ),
    Advice(
        "torch/nn/utils/clip_grad.py",
        "Pass error_if_nonfinite=False, and look at the returned norm now and then.",
        before="clip_grad_norm_(params, 1.0, error_if_nonfinite=True)",
        after="""
        norm = clip_grad_norm_(params, 1.0)
        if step % 100 == 0:
            check(norm.item())
        """,
    ),
    Advice(
        "torch/distributions/distribution.py",
        "Pass validate_args=False (or, once the model works, "
        "torch.distributions.Distribution.set_default_validate_args(False)): every check reads its answer back.",
        before="Normal(mean, std)",
        after="Normal(mean, std, validate_args=False)",
        argument="validate_args=False",
        certain=DISTRIBUTIONS,
    ),
    Advice(
        "torch/optim/optimizer.py _get_value",
        "Keep the learning rate and the step count off the device (torch.set_default_tensor_type and "
        "torch.set_default_device put them there), or pass capturable=True.",
        before="Adam(params, lr=torch.tensor(1e-3, device='cuda'))",
        after="Adam(params, lr=1e-3)",
    ),
    Advice(
        "torch/optim/lbfgs.py|torch/optim/_adafactor.py",
        "It looks at values on the host by design; AdamW with fused=True looks at none.",
        by_design=True,
    ),
    Advice(
        "torch/_tensor.py __format__",
        "Print it every so many steps only, and bring all values of a line to the host at once "
        "(torch.stack(values).tolist()): each that is formatted is a wait of its own.",
        before='print(f"{loss:.3f} {accuracy:.2f}")',
        after="""
        if step % 100 == 0:
            loss, accuracy = torch.stack([loss, accuracy]).tolist()   # one wait for both
            print(f"{loss:.3f} {accuracy:.2f}")
        """,
    ),
    Advice(
        "torchmetrics/aggregation.py _cast_and_nan_check_input",
        "Pass nan_strategy='disable' to a metric that is given no weights (torchmetrics 1.7 and later): it looks for "
        "NaN in each value and reads the answer back, twice an update.",
        before="mean = MeanMetric()",
        after="mean = MeanMetric(nan_strategy='disable')",
    ),
)
"""Python code of PyTorch, and of libraries that many use with it, that reads a value, by file and function."""

PLACES = (
    "Where what it picks is needed as it is, find its places once for all tensors that it picks from (places = "
    "mask.nonzero(as_tuple=True)), outside of the loop where it stays the same, and take x[places]: one wait for all, "
    "and none in the gradient."
)
"""Of a mask whose values cannot be replaced: their places keep the result as it is."""

SHAPES: Section = (
    Advice(
        "aten::repeat_interleave",
        "Pass output_size=, the sum of the repeats, from the host.",
        before="torch.repeat_interleave(x, repeats)",
        after="torch.repeat_interleave(x, repeats, output_size=total)",
        argument="output_size=total",
    ),
    Advice(
        "aten::bincount",
        "Count into a tensor of known size: torch.zeros(n).scatter_add_(0, x, ones). minlength= does not help: the "
        "largest value is read all the same.",
        before="counts = torch.bincount(x)",
        after="counts = torch.zeros(n, dtype=x.dtype, device='cuda').scatter_add_(0, x, torch.ones_like(x))",
    ),
    Advice(
        "aten::masked_select",
        "Keep the shape: torch.where(mask, x, 0), or multiply by the mask and divide by its sum.",
        before="loss = x.masked_select(mask).mean()",
        after="loss = (x * mask).sum() / mask.sum()",
    ),
    Advice(
        "IndexBackward0 aten::nonzero",
        "This is the gradient of x[mask]: take x[places] in the forward pass (places = mask.nonzero(as_tuple=True), "
        "found once for all tensors that the mask picks from), whose gradient needs no size; or keep the shape there "
        "(torch.where(mask, x, 0), or weight by the mask). Places of a mask that stays the same are found outside of "
        "the loop.",
        before="loss = f(x[mask], y[mask])",
        after="""
        places = mask.nonzero(as_tuple=True)   # one wait for all
        loss = f(x[places], y[places])
        """,
    ),
    Advice(
        f"{WRITE} aten::nonzero",
        "Write with x = torch.where(mask, values, x), or masked_fill_ of a Python number, instead of x[mask] = values.",
        before="x[mask] = values",
        after="x = torch.where(mask, values, x)",
    ),
    Advice(
        "aten::index aten::nonzero",
        "Keep the shape: torch.where(mask, x, 0), or weight by the mask, instead of x[mask]. Where 0 changes the "
        f"result, fill in what does not: inf before min(), -inf before max(), 1 in a divisor. {PLACES}",
        before="loss = x[mask].mean()",
        after="loss = torch.where(mask, x, 0).sum() / mask.sum()",
    ),
    Advice(
        UNIQUE,
        "Do it on the host while loading the data, or work with a fixed upper bound on the count.",
    ),
    Advice(
        "ProdBackward0 aten::nonzero",
        "The gradient of prod() looks for zeros: where the factors are positive, torch.exp(torch.log(x).sum()) "
        "needs no look.",
    ),
    Advice(
        "aten::where aten::nonzero",
        "Use torch.where with three arguments, or the mask itself, which keep the shape; where the places are needed, "
        "torch.nonzero_static of a fixed size.",
        before="""
        rows, = torch.where(x > 0)
        y = x[rows].sum()
        """,
        after="y = torch.where(x > 0, x, 0).sum()",
    ),
    Advice(
        "aten::nonzero|aten::nonzero_numpy|aten::argwhere",
        "Work with the mask itself (torch.where with three arguments), or torch.nonzero_static of a fixed size.",
        before="rows = mask.nonzero()",
        after="rows = torch.nonzero_static(mask, size=most)",
    ),
)
"""Ops whose result has a shape that depends on values."""

TRUTH = "truth"
"""Stands for the answer to whether something holds, which the program reads to go on."""

DECIDE = (
    "Decide on the device (torch.where, or multiply by the condition), or look at it every so many steps; a loop that "
    "stops on it can ask every so many rounds. What changes nothing where it does not hold, such as masked_fill with "
    "an empty mask, needs no question."
)

READ_TRUTH = Advice(
    TRUTH,
    DECIDE,
    before="""
    if torch.isnan(loss):
        break
    """,
    after="""
    bad |= torch.isnan(loss)
    if step % 100 == 0 and bad:
        break
    """,
)
"""For a branch on a value that the program reads by itself: ``if mask.any().item():``."""

READS: Section = (
    Advice(
        "CumprodBackward0|aten::cumprod_backward",
        "The gradient of cumprod() looks for zeros: where the factors are positive, "
        "torch.exp(torch.log(x).cumsum(dim)) needs no look.",
    ),
    Advice(
        "aten::one_hot",
        "Pass num_classes=.",
        before="one_hot(classes)",
        after="one_hot(classes, num_classes=10)",
        argument="num_classes=n",
    ),
    Advice(
        "aten::histc",
        "Pass min= and max=: without them both are read back.",
        before="torch.histc(x, bins=10)",
        after="torch.histc(x, bins=10, min=0, max=1)",
        argument="min=low, max=high",
    ),
    Advice(
        "aten::normal",
        "Sample as mean + std * torch.randn_like(std) (Normal.rsample does): torch.normal checks std on the host.",
        before="torch.normal(mean, std)",
        after="mean + std * torch.randn_like(std)",
    ),
    Advice(
        "aten::masked_fill|aten::masked_fill_",
        "Take the value from the device with x = torch.where(mask, value, x), or pass a Python number.",
        before="x.masked_fill_(mask, value)",
        after="x = torch.where(mask, value, x)",
    ),
    Advice(
        "aten::index_fill|aten::index_fill_",
        "Pass a Python number, or write the value with index_copy_.",
        before="x.index_fill_(0, rows, torch.tensor(0.0))",
        after="x.index_fill_(0, rows, 0.0)",
    ),
    Advice(
        "aten::linalg_inv|aten::inverse",
        "Call torch.linalg.inv_ex, and look at its info later.",
        before="y = torch.linalg.inv(x)",
        after="y, info = torch.linalg.inv_ex(x)   # info says later whether it failed",
    ),
    Advice(
        "aten::linalg_cholesky|aten::cholesky",
        "Call torch.linalg.cholesky_ex, and look at its info later.",
        before="y = torch.linalg.cholesky(x)",
        after="y, info = torch.linalg.cholesky_ex(x)   # info says later whether it failed",
    ),
    Advice(
        "aten::linalg_solve",
        "Call torch.linalg.solve_ex, and look at its info later.",
        before="y = torch.linalg.solve(a, b)",
        after="y, info = torch.linalg.solve_ex(a, b)",
    ),
    Advice(
        "aten::linalg_lu_factor",
        "Call torch.linalg.lu_factor_ex, and look at its info later.",
        before="lu, pivots = torch.linalg.lu_factor(x)",
        after="lu, pivots, info = torch.linalg.lu_factor_ex(x)",
    ),
    Advice(
        "aten::linalg_ldl_factor",
        "Call torch.linalg.ldl_factor_ex, and look at its info later.",
        before="ld, pivots = torch.linalg.ldl_factor(x)",
        after="ld, pivots, info = torch.linalg.ldl_factor_ex(x)",
    ),
    Advice(
        SPECTRAL,
        "No form of it leaves the wait out: call it once for a batch of matrices, less often, or on the host where "
        "they are small.",
    ),
    Advice(
        "aten::_linalg_check_errors",
        "Use the _ex variant where there is one (torch.linalg.cholesky_ex, inv_ex, solve_ex, lu_factor_ex, "
        "ldl_factor_ex) and look at its info later.",
    ),
    Advice(
        "aten::equal",
        "Compare on the device, (a == b).all(), and read the answer later.",
        before="same = torch.equal(a, b)",
        after="same = (a == b).all()   # read it later",
    ),
    Advice(
        "aten::allclose",
        "Compare on the device, torch.isclose(a, b).all(), and read the answer later.",
        before="same = torch.allclose(a, b)",
        after="same = torch.isclose(a, b).all()   # read it later",
    ),
    Advice(
        "aten::ctc_loss",
        "Pass the lengths as tuples: 5 waits instead of 8; no form of it is without.",
    ),
    Advice(
        "aten::is_nonzero",
        DECIDE,
        before=READ_TRUTH.before,
        after=READ_TRUTH.after,
    ),
    Advice(
        "tensor()|as_tensor() aten::item",
        "Join values that are on the device with torch.stack, which leaves them there.",
        before="torch.tensor([a, b])",
        after="torch.stack([a, b])",
    ),
    Advice(
        "[] aten::item",
        "Index with a tensor of one dimension (x.index_select(0, i.view(1))), which stays on the device; keep a "
        "slice's bound on the host, or mask instead of slicing.",
        before="row = x[i]",
        after="row = x.index_select(0, i.view(1)).squeeze(0)",
    ),
)
"""Ops that read a value."""

SPARSE: Section = (
    Advice(
        "aten::coalesce|aten::_coalesce",
        "Coalesce what stays the same once, outside the loop, or keep it in CSR (to_sparse_csr()): every operation on "
        "a sparse tensor that is not coalesced does it again, and waits for the size. Sparse gradients do each time.",
        before="y = adjacency @ x",
        after="""
        adjacency = adjacency.coalesce()   # once
        y = adjacency @ x
        """,
    ),
)
"""Sparse tensors."""

BY_OP: Section = (*PYTORCH_CODE, *SHAPES, *READS, *SPARSE, *NEW_TENSORS)
