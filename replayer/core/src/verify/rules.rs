// SPDX-License-Identifier: MIT OR Apache-2.0
//! The names of the rules and what each demands.

gpureplay_format::named! {
    /// A rule that a recording must keep.
    Rule;

    /// A region starts at a page, has at least one page, and its reserved field is zero.
    RegionShape = "region-shape";
    /// A region lies below the end of the address range of the GPU's family: 48 bits for Mali.
    RegionRange = "region-range";
    /// Regions ascend and do not overlap.
    RegionsDisjoint = "regions-disjoint";
    /// No region is writable and executable at once.
    WriteXorExecute = "write-xor-execute";
    /// A region's access suits its kind: code is executable, descriptors, data and scratch are not, and all are readable.
    RegionKind = "region-kind";
    /// All regions, and the page tables that they can need, stay within the memory limit.
    MemoryLimit = "memory-limit";
    /// Identity checks read registers that are constants of the GPU.
    IdentityRegister = "identity-register";
    /// The identity checks contain the product in GPU_ID, and it is that of the header.
    IdentityProduct = "identity-product";
    /// A tensor has a name, a known kind and element type, known flags, and a shape without zeros.
    TensorShape = "tensor-shape";
    /// Pieces and axes belong to one tensor each, in order, without gaps.
    TensorTables = "tensor-tables";
    /// The pieces of a tensor cover its elements: each stays inside, none is larger, together there are enough.
    TensorElements = "tensor-elements";
    /// No two elements of a piece share a byte of GPU memory or an element of the array.
    TensorOverlap = "tensor-overlap";
    /// A tensor's elements are aligned and lie inside one region that holds data.
    TensorRegion = "tensor-region";
    /// Segments have a name and a known kind, and cover all actions in order.
    SegmentTable = "segment-table";
    /// Segments come in the order set-up, run, finish, and at least one runs.
    SegmentOrder = "segment-order";
    /// An action is known and its operands are in range.
    ActionForm = "action-form";
    /// The bytes of an upload are in the file and decode to exactly its length.
    UploadData = "upload-data";
    /// Uploads and fills stay inside one region that is not scratch, and outside of set-up they touch no code.
    UploadRegion = "upload-region";
    /// A recording writes nothing but settings, and no bits that drivers leave alone on its GPU.
    RegisterWrite = "register-write";
    /// Settings are written first in set-up, before the GPU has power.
    RegisterWriteOrder = "register-write-order";
    /// Every wait is bounded, and the bound is within the limit.
    BoundedWait = "bounded-wait";
    /// All waits together stay within the limit.
    TotalTime = "total-time";
    /// All bytes that are moved stay within the limit; a tensor counts once for each of its pieces.
    TotalBytes = "total-bytes";
    /// A job header lies at a multiple of 64 inside a writable region that holds descriptors.
    JobHeader = "job-header";
    /// A submit uses a slot that exists, and only configuration bits for caches and the MMU; a launch keeps the rules of its family.
    JobConfiguration = "job-configuration";
    /// Every chain is made ready (rearmed or uploaded) in its segment before it is submitted.
    JobRestored = "job-restored";
    /// Every header that is made ready is part of a chain that is submitted in the same segment.
    JobSubmitted = "job-submitted";
    /// A bound tensor exists, and its kind suits the segment and the direction.
    BoundTensor = "bound-tensor";
    /// The recording is for the GPU family that is going to replay it.
    Family = "family";
}
