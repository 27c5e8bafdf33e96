// Vector, predicate and alignment calls on the registers of a vector core: the calls in a __VEC_SCOPE__.
//
// registers.hpp has the types, tags.hpp the tag arguments, lanes.hpp the common parts of all calls.
#pragma once

#include "pto/micro/arithmetic.hpp"
#include "pto/micro/convert.hpp"
#include "pto/micro/field.hpp"
#include "pto/micro/loads_stores.hpp"
#include "pto/micro/others.hpp"
#include "pto/micro/predicates.hpp"
#include "pto/micro/rearrange.hpp"
#include "pto/micro/reduce.hpp"
#include "pto/micro/sorting.hpp"
#include "pto/micro/special.hpp"
