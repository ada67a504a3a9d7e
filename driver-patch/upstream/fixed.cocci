// SPDX-License-Identifier: GPL-2.0
//
// Lets a buffer of panfrost have an address of the caller's choice.
// `fixed.txt` says why, `fixed.sh` adds functions and a flag, `mail` makes a patch of all.

virtual patch

@flags depends on patch@
@@
- ~(PANFROST_BO_NOEXEC | PANFROST_BO_HEAP)
+ ~(PANFROST_BO_NOEXEC | PANFROST_BO_HEAP | PANFROST_BO_FIXED)

@create depends on patch@
identifier ARGS, BO;
@@
  panfrost_ioctl_create_bo(...)
  {
  	...
+ 	if ((ARGS->flags & PANFROST_BO_FIXED) && !panfrost_fixed_va_is_valid(ARGS))
+ 		return -EINVAL;
+
  	BO = panfrost_gem_create(..., ARGS->size, ARGS->flags);
  	if (IS_ERR(BO)) return PTR_ERR(BO);
+ 	if (ARGS->flags & PANFROST_BO_FIXED)
+ 		BO->fixed_va = ARGS->offset;
  	...
  }

@open depends on patch@
identifier MAPPING, RET;
expression SIZE, ALIGN, COLOR;
@@
  panfrost_gem_open(...)
  {
  	...
- 	RET = drm_mm_insert_node_generic(&MAPPING->mmu->mm, &MAPPING->mmnode, SIZE >> PAGE_SHIFT, ALIGN, COLOR, 0);
+ 	RET = panfrost_gem_reserve(MAPPING, SIZE, ALIGN, COLOR);
  	...
  }

@object depends on patch@
@@
  struct panfrost_gem_object {
  	...
  	size_t heap_rss_size;
+
+ 	/* Address in every file that opens the object; 0 if the driver chooses. */
+ 	u64 fixed_va;
  	...
  };
