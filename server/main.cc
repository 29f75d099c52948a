#include "server/cli/commands.h"

int main(int argc, char** argv) { return quire::RunCommandLine(argc, argv); }
