// The communication library, for whole programs that run here: a group of processes of one machine that reach each
// other's windows. Its topology is a mesh, so its context is the structure of 1056 bytes (docs/ranks.md). A window has
// HCCL_BUFFSIZE MB (200 by default), zero at first.
#pragma once

#include "acl/acl.h"
#include "hccl/hccl_types.h"

#ifdef __cplusplus
extern "C" {
#endif

HcclResult HcclGetRootInfo(HcclRootInfo* root);
HcclResult HcclCommInitRootInfo(uint32_t ranks, const HcclRootInfo* root, uint32_t rank, HcclComm* comm);
HcclResult HcclCommDestroy(HcclComm comm);
HcclResult HcclGetCommName(HcclComm comm, char* name);
HcclResult HcclGetRankSize(HcclComm comm, uint32_t* ranks);
HcclResult HcclGetRankId(HcclComm comm, uint32_t* rank);
HcclResult HcclBarrier(HcclComm comm, aclrtStream stream);

#ifdef __cplusplus
}
#endif
