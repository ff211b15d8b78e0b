"""Prints, as one JSON line, what PyTorch says of the GPU, and the ceilings that it measures: copies and products."""
import json
import platform

import torch


def seconds(work, repeats):
    """Of one of them, after warming up, by the device's own clock."""
    for _ in range(3):
        work()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(repeats):
        work()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / 1e3 / repeats


def product(dtype, size, tf32=False):
    """TFLOP/s of a square product of random numbers."""
    torch.backends.cuda.matmul.allow_tf32 = tf32
    a, b = (torch.randn(size, size, device="cuda").to(dtype) for _ in range(2))
    return round(2 * size**3 / seconds(lambda: a @ b, 10) / 1e12, 1)


def main():
    out = {"python": platform.python_version(), "pytorch": torch.__version__, "cuda": torch.version.cuda,
           "cuda_available": torch.cuda.is_available()}
    if torch.cuda.is_available():
        device = torch.cuda.get_device_properties(0)
        source = torch.empty(2**32, dtype=torch.uint8, device="cuda")
        target = torch.empty_like(source)
        host = torch.empty(2**28, dtype=torch.uint8, pin_memory=True)
        out.update(
            gpu=device.name, multiprocessors=device.multi_processor_count, memory_mib=device.total_memory >> 20,
            compute_capability=f"{device.major}.{device.minor}", cudnn=torch.backends.cudnn.version(),
            nccl=".".join(map(str, torch.cuda.nccl.version())),
            copy_tb_per_s=round(2 * source.numel() / seconds(lambda: target.copy_(source), 10) / 1e12, 3),
            host_to_device_gb_per_s=round(
                host.numel() / seconds(lambda: target[:host.numel()].copy_(host, non_blocking=True), 5) / 1e9, 1),
            bfloat16_tflops=product(torch.bfloat16, 8192), float16_tflops=product(torch.float16, 8192),
            tf32_tflops=product(torch.float32, 8192, True), float32_tflops=product(torch.float32, 4096))
        x = torch.zeros(1, device="cuda")
        out["launch_us"] = round(seconds(lambda: x.add_(1), 1000) * 1e6, 2)
    print(json.dumps(out))


main()
