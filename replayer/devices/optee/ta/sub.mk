# SPDX-License-Identifier: MIT OR Apache-2.0
# Sources of the trusted application; TRUST_LIBRARY is the folder with libgpureplay_optee_trust.a, KEY that of the key's header.
srcs-y += gpureplay_ta.c
global-incdirs-y += .
global-incdirs-y += ../pta
cppflags-y += -I$(KEY)
libdirs += $(TRUST_LIBRARY)
libnames += gpureplay_optee_trust
