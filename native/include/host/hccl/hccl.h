// The communication library, for whole programs on this machine: a group of processes that access each
// other's windows. The topology is a mesh, so the context is the structure of 1056 bytes (docs/ranks.md). A
// window has HCCL_BUFFSIZE MB (200 by default) and is zero at first.
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
