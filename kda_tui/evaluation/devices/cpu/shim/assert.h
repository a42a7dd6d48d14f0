// assert and printf are part of every candidate; the rest of the host library is not.
#pragma once
