#pragma once

#include "hccl/hccl.h"
