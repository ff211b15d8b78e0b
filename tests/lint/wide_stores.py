#!/usr/bin/env python3
"""Checks that batch norm's 16-bit kernels store 16 bytes at a time, in the PTX that nvcc makes.

nvcc splits a plain assignment of a pack into stores of 2 or 4 bytes. These stores cost memory bandwidth, and no test of
results fails. Needs nvcc ($CUDA_HOME or /usr/local/cuda). Exits with 77 if there is no nvcc.
"""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SOURCE = "engine/backends/cuda/kernels/batch_norm.cu"
# Kernels of packs of eight 16-bit numbers, by their mangled names.
WIDE = re.compile(r"(ApplyKernel|GradKernel)IN\w*?(4Bf16|4Half)ELi8E|SumKernelILi8E\w*GradTerms\w*MaskE[12]")


def main():
    nvcc = os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin/nvcc")
    if not os.path.exists(nvcc):
        print(f"{nvcc} is missing")
        sys.exit(77)
    ptx = subprocess.run([nvcc, "-ptx", SOURCE, "-o", "-", "-std=c++20", "-O3", "--extended-lambda", "-arch=compute_90", "-I.",
                          "-Xcompiler=-Wno-unknown-pragmas"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    checked, narrow = 0, []
    for entry in ptx.split(".entry ")[1:]:
        name = entry.split("(")[0].strip()
        if not WIDE.search(name):
            continue
        checked += 1
        if "st.global.wb.v4" not in entry or re.search(r"st\.global\.(u16|b16|v2\.u16)", entry):
            narrow.append(name)
    for name in narrow:
        print(f"cannot store 16 bytes at a time in {name}: its PTX has narrower stores; store packs by Store() of number.h")
    if not checked:
        print(f"cannot find the kernels in {SOURCE}: no name matches; mend the pattern in this file")
    print(f"{checked} kernels, {len(narrow)} with narrow stores")
    sys.exit(1 if narrow or not checked else 0)


main()
