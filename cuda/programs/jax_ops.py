# SPDX-License-Identifier: MIT OR Apache-2.0
"""JAX: a jitted function of a matrix product, tanh and a sum."""
import jax
import jax.numpy as jnp

f = jax.jit(lambda a, b: jnp.tanh(a @ b).sum(0) + jnp.arange(512.0))
print("jax", float(f(jnp.ones((512, 512)), jnp.ones((512, 512)) * 0.001).sum()))
