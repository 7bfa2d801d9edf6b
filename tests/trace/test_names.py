import pytest

from syncscope.trace.names import (
    CALLS,
    SYNC_ROLES,
    Copy,
    canonical,
    collective_of,
    copy_of,
    is_direct_collective,
    role,
    shorten,
)


@pytest.mark.parametrize(
    "name",
    ["cudaStreamSynchronize", "hipStreamSynchronize", "urQueueFinish", "cudaDeviceSynchronize", "hipDeviceSynchronize",
     "cudaEventSynchronize", "hipEventSynchronize", "zeEventHostSynchronize", "cudaMemcpy", "hipMemcpyWithStream",
     "cuMemcpyDtoH_v2", "cudaStreamSynchronize_ptsz"],
)  # fmt: skip
def test_calls_that_wait_for_the_device_block(name):
    assert role(name) in SYNC_ROLES


@pytest.mark.parametrize(
    "name",
    ["cudaMemcpyAsync", "cudaStreamWaitEvent", "cudaEventQuery", "hipStreamWaitEvent", "cudaLaunchKernel",
     "cudaMallocAsync", "cudaFree", "INVALID", "urEnqueueEventsWait", ""],
)  # fmt: skip
def test_calls_that_only_enqueue_or_ask_do_not_block(name):
    assert role(name) not in SYNC_ROLES


def test_a_name_has_one_role():
    names = [name for vendors in CALLS.values() for spellings in vendors for name in spellings]
    assert len(names) == len(set(names))


def test_every_role_with_a_cuda_spelling_has_a_hip_one():
    assert [role for role, vendors in CALLS.items() if vendors.cuda and not vendors.hip] == []


def test_a_hip_call_has_the_role_of_its_cuda_twin():
    twins = [
        (name, f"{prefix}{name[3:]}") for vendors in CALLS.values() for name in vendors.hip for prefix in ("cu", "cuda")
    ]
    assert [name for name, twin in twins if role(twin) not in ("", role(name))] == []


def test_names_of_the_table_are_canonical():
    names = [name for vendors in CALLS.values() for spellings in vendors for name in spellings]
    assert [name for name in names if canonical(name + "_ptsz") != name] == []


def test_a_call_is_told_as_a_program_writes_it():
    assert shorten("cudaStreamSynchronize_v3020") == "cudaStreamSynchronize"
    assert shorten("cuMemcpyDtoHAsync_v2") == "cuMemcpyDtoHAsync"
    assert shorten("my_own_call_v2") == "my_own_call_v2"


def test_suffixes_of_linkage_do_not_change_the_role():
    assert role("cuMemcpyDtoHAsync_v2_ptsz") == role("cuMemcpyDtoHAsync") == "copy"
    assert role("cudaLaunchKernelExC_v11060") == "launch"
    assert role("hipGetDevicePropertiesR0600") == ""


@pytest.mark.parametrize(
    ("name", "copy"),
    [
        ("Memcpy HtoD (Pageable -> Device)", Copy("HtoD", "pageable")),
        ("Memcpy HtoD (Pinned -> Device)", Copy("HtoD", "pinned")),
        ("Memcpy DtoH (Device -> Pinned)", Copy("DtoH", "pinned")),
        ("Memcpy DtoH (Device -> Pageable)", Copy("DtoH", "pageable")),
        ("Memcpy DtoH (Managed -> Unknown)", Copy("DtoH", "")),
        ("Memcpy DtoD (Device -> Device)", Copy("DtoD", "")),
        ("Memcpy PtoP (Device -> Device)", Copy("PtoP", "")),
        ("Memcpy HtoH (Pinned -> Pageable)", Copy("HtoH", "pageable")),
        ("Memcpy HtoA (Pinned -> Array)", Copy("HtoD", "pinned")),
        ("Memcpy AtoH (Array -> Pageable)", Copy("DtoH", "pageable")),
        ("Memcpy <unknown> (Unknown -> Unknown)", Copy("", "")),
        ("Memcpy HtoD (PINNED -> DEVICE)", Copy("HtoD", "pinned")),
        ("Memcpy DtoH (DEVICE -> PAGEABLE)", Copy("DtoH", "pageable")),
        ("Memcpy HtoD (Host -> Device)", Copy("HtoD", "")),
        ("CopyHostToDevice", Copy("HtoD", "")),
        ("CopyDeviceToHost", Copy("DtoH", "")),
        ("Memcpy M2D (MEMORY(Unknown) -> DEVICE)", Copy("HtoD", "pageable")),
        ("Memcpy D2M (DEVICE -> MEMORY(Unknown))", Copy("DtoH", "pageable")),
        ("Memcpy H2D (HOST -> DEVICE)", Copy("HtoD", "pinned")),
        ("Memcpy D2H (DEVICE -> HOST)", Copy("DtoH", "pinned")),
        ("Memcpy D2D (DEVICE -> DEVICE)", Copy("DtoD", "")),
        ("Memcpy S2D (SHARED -> DEVICE)", Copy("", "")),
        ("Memcpy", Copy("", "")),
        ("Memset (Device)", Copy("", "")),
    ],
)
def test_names_of_copies_give_direction_and_host_memory(name, copy):
    assert copy_of(name) == copy


@pytest.mark.parametrize(
    ("kernel", "collective"),
    [
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*, unsigned long, ncclWork*)", "allreduce"),
        ("ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclWorkElem)", "allgather"),
        ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*)", "send_recv"),
        ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "reduce_scatter"),
        ("ncclSymkDevKernel_AllReduce_RSxLD_AGxST(ncclSymkDevWorkArgs)", "allreduce"),
        ("ncclAllReduceRingLLKernel_sum_f32(ncclWorkElem)", "allreduce"),
        ("void ncclDevKernel_Generic_1<false>(ncclDevKernelArgsStorage<4096ul>)", "collective"),
        ("void vllm::cross_device_reduce_1stage<float, 2>(vllm::RankData*)", "allreduce"),
        ("void (anonymous namespace)::all_reduce_two_shot_kernel<__nv_bfloat16, 4u, true>(AllReduceData)", "allreduce"),
        ("void (anonymous namespace)::all_reduce_one_shot_push_kernel<__nv_bfloat16, 4u, true>(Data)", "allreduce"),
        ("void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*)", "allreduce"),
        ("void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<1>(P)", "allreduce"),
        ("void flashinfer::trtllm_mnnvl_allreduce::oneshotAllreduceFusionKernel<8>(P)", "allreduce"),
        ("void tensorrt_llm::kernels::ar_fusion::allreduce_fusion_kernel_twoshot_sync<2>(P)", "allreduce"),
        ("void quickreduce::allreduce_prototype_twoshot<AllReduceTwoshot, half>(half const*)", "allreduce"),
        ("void (anonymous namespace)::multimem_one_shot_all_reduce_kernel<c10::BFloat16, 16>(P)", "allreduce"),
        ("void (anonymous namespace)::two_shot_all_reduce_kernel_inplace<c10::BFloat16, 16>(P)", "allreduce"),
        ("void tensorrt_llm::kernels::oneShotAllReduceKernel<half, 8, true, false>(P)", "allreduce"),
        ("void aiter::allreduce_fusion_kernel_1stage<__hip_bfloat16, 8>(P)", "allreduce"),
        ("_ZN5aiter30allreduce_fusion_kernel_1stageIDF16bLi8EEEvP", "allreduce"),
        ("_ZN4vllm26cross_device_reduce_1stageI14__hip_bfloat16Li4EEEvPNS_8RankDataE", "allreduce"),
        ("kuserbuffers_pushsend(int*, int*, int4*, int4*, int)", "send_recv"),
        ("void userbuffers_fp16_sum_inplace_gpu_rr_rs_oop<8>(int, int)", "collective"),
        ("void flashinfer::trtllm_mnnvl_allreduce::rmsNormLamport<8>(P)", ""),
        ("void moe_sum_reduce_kernel<c10::BFloat16, 8>(c10::BFloat16 const*)", ""),
        ("void deep_ep::intranode::dispatch<8, 768>(int4*, float*)", "all_to_all"),
        ("void deep_ep::internode::cached_notify<false>(int, int)", "all_to_all"),
        ("void deep_ep::intranode::cached_notify_combine<8>(void**)", "all_to_all"),
        ("void deep_ep::layout::get_dispatch_layout<256, 32, 8>(long const*)", ""),
        ("void at::native::reduce_kernel<512, 1>(at::native::ReduceOp)", ""),
        ("void cub::DeviceReduceByKeyKernel<cub::DispatchReduceByKey<long*>>", ""),
        ("_scatter_gather_elementwise_kernel", ""),
    ],
)
def test_kernels_of_collectives_are_told_from_compute(kernel, collective):
    assert collective_of(kernel) == collective


@pytest.mark.parametrize(
    ("kernel", "direct"),
    [
        ("void vllm::cross_device_reduce_2stage<__nv_bfloat16, 8>(RankData*)", True),
        ("void (anonymous namespace)::all_reduce_two_shot_kernel<__nv_bfloat16, 4u, true>(AllReduceData)", True),
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", False),
    ],
)
def test_kernels_that_write_to_the_memory_of_peers_are_known(kernel, direct):
    assert is_direct_collective(kernel) is direct


@pytest.mark.parametrize(
    ("argument", "collective"),
    [("_reduce_scatter_base", "reduce_scatter"), ("allreduce_coalesced", "allreduce"), ("all_to_allv", "all_to_all"),
     ("allgather_into_tensor_coalesced", "allgather"), ("Something New", "something new")],
)  # fmt: skip
def test_the_rows_own_collective_name_decides(argument, collective):
    assert collective_of("ncclDevKernel_Generic_1", argument) == collective
