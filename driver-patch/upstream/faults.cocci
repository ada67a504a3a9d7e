// SPDX-License-Identifier: GPL-2.0
//
// Lets panfrost see every fault of an address space, also after its first.
// `faults.txt` says why; `mail` makes a patch of both.

virtual patch

// The mask is written before the bit is cleared that it is made of.
@order@
expression DEV, MASK;
@@
- mmu_write(DEV, MMU_INT_MASK, ~DEV->as_faulty_mask);
  DEV->as_faulty_mask &= ~MASK;
+ mmu_write(DEV, MMU_INT_MASK, ~DEV->as_faulty_mask);

// An address space that had a fault keeps its bit when its owner releases it.
@released@
expression DEV, AS, MMU;
@@
  MMU->as = AS;
+ if (DEV->as_faulty_mask & (BIT(AS) | BIT(AS + 16))) {
+ 	/* The last owner had a fault, and nobody unmasked it. */
+ 	mmu_write(DEV, MMU_INT_CLEAR, BIT(AS) | BIT(AS + 16));
+ 	DEV->as_faulty_mask &= ~(BIT(AS) | BIT(AS + 16));
+ 	mmu_write(DEV, MMU_INT_MASK, ~DEV->as_faulty_mask);
+ }
  set_bit(AS, &DEV->as_alloc_mask);
