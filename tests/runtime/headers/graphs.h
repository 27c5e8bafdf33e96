#pragma once
int run_host_graph(const char* library, const char* name, bool report);
int run_device_graph(const char* library, const char* name, bool concurrent);
