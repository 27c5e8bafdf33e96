"""Diagnostic codes of this package, PTO-Exxxx: (code, title, meaning, way out).

01xx text, 02xx names and structure, 03xx types, 04xx shapes, 05xx locations and layouts, 06xx target
profiles, 07xx memory, 08xx synchronization, 09xx auto and manual mode, 10xx scopes, 11xx cross-core FIFOs,
12xx bytecode, 13xx emitted C++, 20xx launches, 21xx run-time errors, 22xx sanitizers, 23xx numerics, 24xx
engines and ranks, 26xx and 28xx the task runtime, 29xx searches, 30xx the Python language, 31xx pypto and
simpler.
"""

from __future__ import annotations

FACTS: tuple[tuple[str, str, str, str], ...] = (
    (
        "PTO-E0001",
        "cannot read the input",
        "The file does not exist, is a directory, or may not be read.",
        "Check the path and its permissions.",
    ),
    (
        "PTO-E0002",
        "cannot write the output",
        "The output file or its directory may not be written.",
        "Check the path, its permissions and the free space; nothing was written.",
    ),
    (
        "PTO-E0003",
        "option without effect",
        "An option has no effect with the other options or with this program.",
        "Leave out the option, or change the other options as the message says.",
    ),
    (
        "PTO-E0004",
        "not a PTO program",
        "The tool expects text or bytecode of PTO, but the file is C++, Python or a compiled library.",
        "Use pto run or pto build for C++, pto run for libraries, and python for Python: "
        "FUNCTION.lower(ARGUMENTS).as_pto() gives the text of its kernels.",
    ),
    (
        "PTO-E0005",
        "options that contradict each other",
        "--emit, the suffix of -o and --target select the output; two of them select different outputs.",
        "Leave out one of them.",
    ),
    (
        "PTO-E0006",
        "no pygls",
        "pygls is missing, the library behind pto lsp.",
        "Install it: pip install 'pto[lsp]'.",
    ),
    (
        "PTO-E0007",
        "bug of pto in an editor",
        "The check of a text ended with an exception, which is a bug of pto. The server goes on.",
        "Report it with the text and the log of the server.",
    ),
    (
        "PTO-E0101",
        "unexpected character",
        "The text contains a character that begins no token.",
        "Remove it.",
    ),
    ("PTO-E0102", "unclosed string", "A string literal does not end on its line.", "Add the closing quote."),
    (
        "PTO-E0103",
        "invalid UTF-8",
        "The file is not UTF-8 text.",
        "Save it as UTF-8; a bytecode file is read by ptobc.",
    ),
    (
        "PTO-E0104",
        "number out of range",
        "A number does not fit its type or any type.",
        "Write a number in range.",
    ),
    (
        "PTO-E0105",
        "nesting too deep",
        "Regions, lists or types are nested deeper than any program needs.",
        "Flatten the program.",
    ),
    (
        "PTO-E0106",
        "unexpected end of file",
        "The text ends inside a statement or a region.",
        "Add the missing closing bracket.",
    ),
    (
        "PTO-E0107",
        "syntax error",
        "A token other than the expected one was found.",
        "Follow the syntax shown with the error; `pto isa NAME` shows it too.",
    ),
    (
        "PTO-E0108",
        "unknown operation",
        "No instruction has this name.",
        "Use the suggested name; `pto isa` lists all.",
    ),
    (
        "PTO-E0109",
        "unknown type",
        "No type has this name.",
        "Use the suggested name, or define the alias first.",
    ),
    (
        "PTO-E0110",
        "malformed type",
        "The parameters of a type do not have the expected form.",
        "Follow the form in the message.",
    ),
    ("PTO-E0111", "unknown attribute value", "No enum or alias has this name.", "Use the suggested name."),
    (
        "PTO-E0112",
        "bad attribute value",
        "The attribute does not take this value.",
        "Use one of the listed values.",
    ),
    (
        "PTO-E0113",
        "unknown attribute or directive",
        "The instruction has no attribute of this name.",
        "Use the suggested name, or prefix a foreign attribute with its dialect.",
    ),
    ("PTO-E0114", "attribute given twice", "A dictionary has the same key twice.", "Remove one."),
    ("PTO-E0115", "missing attribute", "The instruction needs an attribute that is missing.", "Add it."),
    (
        "PTO-E0116",
        "attributes or operands do not fit",
        "Attribute values or the presence of operands violate a rule of the instruction.",
        "Follow the rule in the message; `pto isa NAME` lists them all.",
    ),
    (
        "PTO-E0201",
        "undefined value",
        "A value is used without a definition.",
        "Define it, or correct its name.",
    ),
    (
        "PTO-E0202",
        "name defined twice",
        "Two values or blocks of one scope have the same name.",
        "Rename one.",
    ),
    (
        "PTO-E0203",
        "use not dominated by its definition",
        "On some path the value is used before it is defined.",
        "Move the definition up, or pass the value as a block argument.",
    ),
    (
        "PTO-E0204",
        "undefined function",
        "A call or import names a function that does not exist.",
        "Correct the name.",
    ),
    ("PTO-E0205", "function defined twice", "Two functions have the same name.", "Rename one."),
    ("PTO-E0206", "undefined block", "A branch names a block that does not exist.", "Add the block."),
    (
        "PTO-E0207",
        "type differs from the definition",
        "The type written at a use is not the type of the value.",
        "Write the type of the definition.",
    ),
    (
        "PTO-E0208",
        "wrong number of results",
        "The statement names more or fewer results than the operation has.",
        "Name each result once.",
    ),
    (
        "PTO-E0211",
        "missing terminator",
        "A block does not end with a terminator.",
        "Add return or scf.yield.",
    ),
    (
        "PTO-E0212",
        "misplaced terminator",
        "A terminator is not the last operation, or not allowed here.",
        "Move it.",
    ),
    (
        "PTO-E0213",
        "values do not match",
        "A yield, return or branch passes other values than its target takes, or modules declare and define "
        "a function with different types.",
        "Pass values of the declared types.",
    ),
    (
        "PTO-E0214",
        "bad region",
        "The body of an operation does not have the required form.",
        "Use one block, once per case.",
    ),
    ("PTO-E0215", "entry with results", "A kernel entry returns values.", "Store results to global memory."),
    (
        "PTO-E0216",
        "recursion",
        "Functions call each other in a cycle.",
        "Use a loop; a core has no call stack.",
    ),
    (
        "PTO-E0217",
        "entry without body",
        "A declaration is marked as kernel entry.",
        "Give it a body or drop the mark.",
    ),
    (
        "PTO-E0218",
        "call does not match",
        "Arguments or results differ from the function's signature.",
        "Pass the arguments and results that the function declares.",
    ),
    (
        "PTO-E0219",
        "no function",
        "The program has no function, so there is no output.",
        "Check that it is the right file, and put the instructions into a func.func.",
    ),
    (
        "PTO-E0301",
        "types do not fit",
        "Operand types violate a rule of the instruction.",
        "Make the types agree, if necessary with pto.tcvt.",
    ),
    (
        "PTO-E0302",
        "element type not legal",
        "The instruction does not take this element type on this profile.",
        "Use the nearest legal type shown, or convert.",
    ),
    (
        "PTO-E0303",
        "wrong kind of operand",
        "A tile, view, pointer, scalar or register was expected.",
        "Pass an operand of the expected kind.",
    ),
    (
        "PTO-E0401",
        "shapes do not fit",
        "Shapes or valid regions violate a rule of the instruction.",
        "Make the extents agree as the message says.",
    ),
    (
        "PTO-E0402",
        "wrong lane count",
        "A vector register type does not have exactly 256 bytes.",
        "Use the lane count shown.",
    ),
    (
        "PTO-E0501",
        "location or layout does not fit",
        "A tile is in the wrong buffer or stored in the wrong layout.",
        "Move it with pto.tmov, or change its type.",
    ),
    (
        "PTO-E0502",
        "layout contradicts the strides",
        "A view is declared with a layout that contradicts its constant shape and strides.",
        "Correct the strides, or leave out the layout, which is then inferred.",
    ),
    (
        "PTO-E0601",
        "instruction not on this profile",
        "The target does not have this instruction.",
        "Target a profile that has it, or use another instruction.",
    ),
    (
        "PTO-E0602",
        "element type not on this profile",
        "The target does not have this element type for the instruction.",
        "Target a profile that has it, or use another type.",
    ),
    (
        "PTO-E0603",
        "unknown target",
        "The module attribute pto.target_arch names no profile.",
        "Use a2a3, a5, cpu, ...",
    ),
    (
        "PTO-E0701",
        "destination overlaps a source",
        "The instruction may not overwrite bytes that it still reads.",
        "Write to another tile.",
    ),
    (
        "PTO-E0702",
        "tiles do not fit",
        "At some point of the program more bytes are in use than the buffer has.",
        "Use smaller tiles, or fewer at a time; the message lists those that are in use there.",
    ),
    (
        "PTO-E0703",
        "storage of unknown size",
        "A buffer in local memory has an extent that is not constant, so it cannot be placed.",
        "Give it static dimensions.",
    ),
    (
        "PTO-E0704",
        "shared bytes, flags by hand",
        "Tiles had to share bytes in a function with its own flags, which do not order the accesses to "
        "these bytes.",
        "Let the assembler insert the flags (--enable-insert-sync), or place the tiles by hand.",
    ),
    (
        "PTO-E0705",
        "accumulator is another tile",
        "Hardware adds a product to its destination, but the accumulator is another tile.",
        "Accumulate into the tile itself, or copy it first.",
    ),
    (
        "PTO-E0803",
        "wait without a set",
        "On some path, a pipe waits for a flag that is never set, and hangs.",
        "Set the flag after the producer, on every path.",
    ),
    (
        "PTO-E0804",
        "flag set twice",
        "A flag is set again before a wait for it.",
        "Wait first, or use another id.",
    ),
    ("PTO-E0805", "flag left set", "A flag is still set when the function ends.", "Wait for it."),
    (
        "PTO-E0806",
        "buffer token misused",
        "A token is taken twice, or released without being taken.",
        "Pair every get_buf with one rls_buf.",
    ),
    ("PTO-E0807", "buffer token left held", "A token is still held when the function ends.", "Release it."),
    (
        "PTO-E0808",
        "branches disagree on a flag",
        "A flag is set on only one branch of an if.",
        "Set or wait for it on both branches.",
    ),
    (
        "PTO-E0809",
        "flags by hand, none inserted",
        "The function has its own flags, and inserted flags would conflict with them.",
        "Remove the flags of the function, or do not request insertion.",
    ),
    (
        "PTO-E0810",
        "no flags inserted",
        "The program leaves its tiles to the tools, and has no flags: nothing orders its pipes.",
        "Insert flags with `ptoas --enable-insert-sync`, or write them.",
    ),
    (
        "PTO-E0901",
        "tile without address",
        "The program is in manual mode, and a tile has no address.",
        "Give every tile an address, or none.",
    ),
    (
        "PTO-E0902",
        "tile with address",
        "At level1 and level2 the assembler places tiles, but the program gives an address.",
        "Use --pto-level=level3, or drop the address.",
    ),
    (
        "PTO-E0903",
        "tassign in auto mode",
        "tassign binds addresses, but in auto mode the assembler places all tiles. PTOAS has an error here.",
        "Use --pto-level=level3, or drop it.",
    ),
    (
        "PTO-E0904",
        "tassign with automatic synchronization",
        "Flags cannot be inserted automatically for tiles that are rebound.",
        "Insert the flags by hand.",
    ),
    (
        "PTO-E0905",
        "fixed reserved buffer in auto mode",
        "The planner cannot keep other tiles out of a reserved buffer with a fixed base.",
        "Use auto = true, or place every tile by hand (level3).",
    ),
    (
        "PTO-E1001",
        "vector operation outside a vecscope",
        "An operation on registers, masks or alignment state is outside a vecscope.",
        "Wrap the code in pto.vecscope { ... }.",
    ),
    (
        "PTO-E1002",
        "tile operation inside a vecscope",
        "Tile, DMA and flag operations are not allowed inside a vecscope.",
        "Move it out.",
    ),
    (
        "PTO-E1003",
        "wrong core",
        "The operation runs on the other kind of core.",
        "Move it to the right section.",
    ),
    ("PTO-E1004", "nested vecscopes", "A vecscope is inside another one.", "Close the outer one first."),
    (
        "PTO-E1005",
        "register leaves its vecscope",
        "A register, a mask or an alignment state is used outside its vecscope.",
        "Store the value to the vector tile buffer.",
    ),
    (
        "PTO-E1006",
        "implicit capture",
        "strict_vecscope uses a value that is not passed to it.",
        "Pass it as an operand.",
    ),
    (
        "PTO-E1007",
        "alignment state used twice",
        "An alignment state is used a second time, although the first use has consumed it.",
        "Use the state it returned.",
    ),
    (
        "PTO-E1008",
        "load and store alignment mixed",
        "A load stream does not start with vldas, or a store stream does not start with init_align.",
        "Start the stream with the right operation.",
    ),
    (
        "PTO-E1101",
        "several pipe initializations",
        "A function initializes one side of a pipe more than once.",
        "Keep one.",
    ),
    (
        "PTO-E1102",
        "buffer reserved twice",
        "Two reserve_buffer operations of a function have the same name.",
        "Rename one.",
    ),
    (
        "PTO-E1103",
        "unknown reserved buffer",
        "The peer function reserves no buffer of that name.",
        "Correct the name.",
    ),
    (
        "PTO-E1104",
        "pipe not initialized",
        "A FIFO operation is in a function without initialize_pipe.",
        "Add it first.",
    ),
    (
        "PTO-E1105",
        "FIFO operation on the wrong side",
        "The function's pipe does not have this direction or core.",
        "Move the operation, or change dir_mask.",
    ),
    (
        "PTO-E1106",
        "split modes mixed",
        "One logical pipe is used split and unsplit, or its peers disagree.",
        "Use one split mode everywhere on the pipe.",
    ),
    (
        "PTO-E1107",
        "pipe ends do not match",
        "A pipe on reserved buffers does not have exactly two ends in two functions.",
        "Initialize the pipe in both functions, on the same reserved buffer.",
    ),
    (
        "PTO-E1108",
        "reserved buffer that cannot be placed",
        "A reserved buffer has an impossible base, or does not fit beside the tiles of its core.",
        "Correct the base; use smaller tiles or a smaller FIFO; or place the buffer by hand.",
    ),
    (
        "PTO-E1109",
        "flags of a FIFO",
        "The ends of a FIFO name different flags, or a kernel has more FIFOs than flags.",
        "Give both ends the same flag_base, or none; let one FIFO carry several kinds of tile.",
    ),
    (
        "PTO-E1201",
        "not bytecode",
        "The file does not start with the bytes 'PTOBC' and 0.",
        "Give ptobc decode a bytecode file; ptobc encode makes one from text.",
    ),
    (
        "PTO-E1202",
        "unsupported bytecode version",
        "The file has a version or flags that this release does not support.",
        "Read it with the release that wrote it, or encode the program again.",
    ),
    (
        "PTO-E1203",
        "payload length does not match",
        "The header has another size than the file, which was truncated or extended.",
        "Copy the file again, in binary mode.",
    ),
    (
        "PTO-E1204",
        "bad section",
        "A section is unknown, missing, out of order, or longer than the file.",
        "Encode the program again; sections come in the order of their numbers.",
    ),
    (
        "PTO-E1205",
        "unexpected end of a section",
        "A section ends in the middle of an entry.",
        "Encode or assemble the program again.",
    ),
    (
        "PTO-E1206",
        "bad LEB128 number",
        "A number is longer than 64 bits or not in its shortest form.",
        "Encode the program again.",
    ),
    (
        "PTO-E1207",
        "string is not UTF-8",
        "An entry of the string table is not UTF-8 text.",
        "Encode or assemble the program again.",
    ),
    (
        "PTO-E1208",
        "id out of range",
        "An id refers to a string, type, attribute, constant, value or file that does not exist.",
        "Encode or assemble the program again.",
    ),
    (
        "PTO-E1209",
        "count too large",
        "The count of entries is larger than the rest of the section.",
        "Encode or assemble the program again.",
    ),
    (
        "PTO-E1210",
        "bytes left over",
        "A section has more bytes after its last entry.",
        "Encode or assemble the program again.",
    ),
    (
        "PTO-E1211",
        "unknown operation in bytecode",
        "An opcode, variant, immediate or operation name is unknown.",
        "Update pto, or encode the program again.",
    ),
    (
        "PTO-E1212",
        "bad text in a table",
        "A type or attribute of the tables is not text, or its text has errors.",
        "Correct the program and encode it again.",
    ),
    (
        "PTO-E1213",
        "bad constant",
        "An entry of the constant pool is not a value of its type.",
        "Encode the program again.",
    ),
    (
        "PTO-E1214",
        "malformed operation",
        "Operands, results, regions or attributes do not match the operation.",
        "Encode or assemble the program again.",
    ),
    (
        "PTO-E1215",
        "file expands too far",
        "A small file refers to long texts so often that the program would fill the memory.",
        "Encode the program again; the file is damaged or hostile.",
    ),
    (
        "PTO-E1216",
        "not expressible in PTO-BC v0",
        "With --strict-v0, the program has an operation that the v0 reader of PTOAS lacks.",
        "Encode without --strict-v0, or rewrite the operation.",
    ),
    (
        "PTO-E1221",
        "not a file of images",
        "The file is not ELF, has no section .pto with an image, or does not contain the program.",
        "Make it with ptoas PROGRAM -o FILE.elf.",
    ),
    (
        "PTO-E1222",
        "unsupported version of an image",
        "The image, or its table of lines, has a version that this release does not support.",
        "Assemble the program again, or use the release that made the file.",
    ),
    (
        "PTO-E1223",
        "damaged ELF file",
        "The header or a section is outside the file, or has no name.",
        "Make the file again; it is truncated or damaged.",
    ),
    (
        "PTO-E1224",
        "invalid image",
        "An instruction, a jump or a value of an image is invalid, so the image is not run.",
        "Assemble the program again; the file is damaged, or another tool made it.",
    ),
    (
        "PTO-E1225",
        "image with an unknown call",
        "Neither the machine nor a pack has a function that an image calls, and the program in the file does "
        "not produce this image. The text of a file is never compiled.",
        "Assemble the program again with this release.",
    ),
    (
        "PTO-E1226",
        "malformed listing of an image",
        "A line of the text that pto objdump prints and ptoas assembles is malformed.",
        "Write what the message expects; docs/image.md describes the form.",
    ),
    (
        "PTO-E1301",
        "no C++ spelling",
        "This instruction, or this form of it, has no C++ spelling.",
        "Use instructions that have a spelling (`pto isa NAME` shows it), or run it on another engine.",
    ),
    (
        "PTO-E1302",
        "value that C++ cannot pass",
        "A value crosses a function, a branch or a loop, and has no C++ type that can do this.",
        "Pass pointers and scalars, and make views, tiles and FIFO handles where they are used.",
    ),
    (
        "PTO-E1303",
        "constant too large for its C++ type",
        "index is a 32-bit integer in the emitted C++ by default.",
        "Emit with --index-type=int64_t.",
    ),
    (
        "PTO-E1304",
        "two functions with one C++ name",
        "Characters that C++ identifiers cannot contain become '_', which makes two names equal.",
        "Rename one of the functions.",
    ),
    (
        "PTO-E2001",
        "no function to run",
        "The entry does not exist, or the program has several.",
        "Name it with --entry.",
    ),
    (
        "PTO-E2002",
        "function without a body",
        "A call reaches a function that is only declared.",
        "Define it.",
    ),
    (
        "PTO-E2003",
        "not executable here",
        "The engine has no executor for the operation, or it is not an instruction of the ISA.",
        "Replace it, or use an engine that supports it.",
    ),
    (
        "PTO-E2010",
        "bad argument on the command line",
        "An argument of pto run is neither an array nor a number, or its file cannot be read.",
        "See pto run --help for the forms of arguments.",
    ),
    (
        "PTO-E2011",
        "wrong number of arguments",
        "A launch gives more or fewer values than the kernel takes.",
        "Give one per argument, in order.",
    ),
    (
        "PTO-E2012",
        "wrong element type of an array",
        "The array holds other elements than the argument.",
        "Convert the array, or give the raw bits as unsigned integers.",
    ),
    (
        "PTO-E2013",
        "wrong scalar",
        "A scalar argument has the wrong kind or does not fit its type.",
        "Give a number of that type.",
    ),
    (
        "PTO-E2014",
        "argument that a launch cannot pass",
        "A kernel argument is an on-chip tile or other state.",
        "Run the function that makes it.",
    ),
    (
        "PTO-E2015",
        "wrong shape of an array",
        "The array has other extents than the view argument.",
        "Reshape the array.",
    ),
    (
        "PTO-E2016",
        "invalid breakpoint",
        "A breakpoint names a line after the last operation, a file without operations, or an unknown "
        "function; or a watchpoint is not a name with indices.",
        "Write a breakpoint as LINE, LINE:N, FILE:LINE or @FUNCTION, a watchpoint as %TILE[ROW, COLUMN].",
    ),
    (
        "PTO-E2017",
        "invalid launch request",
        "An editor requests a launch without a program, or with options that `pto run` does not have.",
        "Give `program`, `args` and options by their names, as the page on the debugger shows.",
    ),
    (
        "PTO-E2018",
        "cannot record",
        "A program without control flow cannot express the run of the kernel (registers that C++ makes "
        "itself, memory that is not an argument, several ranks), or has more operations than --limit allows.",
        "Record fewer iterations and blocks, or raise --limit; run other kernels under --sanitize.",
    ),
    (
        "PTO-E2019",
        "launch breaks an assumption",
        "The program states a condition on its parameters in pto.assume, and a launch does not satisfy it.",
        "Give other values, or take the condition out of pto.assume.",
    ),
    (
        "PTO-E2101",
        "access outside memory",
        "An instruction accesses bytes beyond the end of a buffer or array.",
        "Check offsets, strides and sizes, and the size of the array.",
    ),
    (
        "PTO-E2102",
        "illegal at run time",
        "An instruction has values that the ISA forbids.",
        "See the message.",
    ),
    (
        "PTO-E2103",
        "tile without an address",
        "A declared tile is used before it is bound to an address.",
        "Bind it with tassign or tpop first.",
    ),
    (
        "PTO-E2104",
        "stuck program",
        "Every core waits for an event that cannot happen.",
        "Pair every wait with a set; free FIFO slots; let all cores reach a grid barrier.",
    ),
    ("PTO-E2105", "trap", "The program executed pto.trap.", "Find out why the program reached it."),
    (
        "PTO-E2106",
        "too many steps",
        "The run took more steps than --max-steps allows, or more time than --timeout does.",
        "Look for an endless loop.",
    ),
    (
        "PTO-E2201",
        "race",
        "Two accesses to the same bytes are not ordered, and one of them writes.",
        "Order them: a flag between pipes, a barrier within one, a semaphore or FIFO between cores.",
    ),
    (
        "PTO-E2202",
        "race between blocks",
        "Two blocks access the same bytes of global memory, and one writes.",
        "Give each block its own part, use atomic stores, or meet in syncall.",
    ),
    (
        "PTO-E2203",
        "use of undefined data",
        "A store, branch or address depends on undefined data.",
        "Write it first; check valid regions.",
    ),
    (
        "PTO-E2204",
        "window outside its source",
        "A partition or subview exceeds its view or tile.",
        "Keep offset + size within the source.",
    ),
    (
        "PTO-E2206",
        "hazard inside a vecscope",
        "A load and a store access the same bytes, and neither a register nor a mem_bar orders them.",
        "Put pto.mem_bar of the named kind between them.",
    ),
    (
        "PTO-E2207",
        "store stream not flushed",
        "An unaligned store stream ends with bytes that are not in memory.",
        "Flush it before the vecscope ends: vstas, vstar or vsta.",
    ),
    (
        "PTO-E2208",
        "mask of another granularity",
        "A mask for elements of one width is used with lanes of another width.",
        "Make the mask for the width of its use, or convert it with pbitcast, ppack or punpack.",
    ),
    (
        "PTO-E2209",
        "pointer leaves its tile",
        "An access through a pointer to a tile touches bytes outside that tile.",
        "Keep the access inside the tile, or make the pointer from the intended tile.",
    ),
    (
        "PTO-E2210",
        "tile overwritten by another",
        "A tile is read after another tile, which is not an alias of it, has overwritten some of its bytes.",
        "Give one of them another address, or read the first before the second is written.",
    ),
    (
        "PTO-E2211",
        "index outside its source",
        "An element of an index operand is outside the valid region of its tile, or outside its view.",
        "Keep indices in the valid range, or set the mode for other indices (clamp, wrap, skip, zero).",
    ),
    (
        "PTO-E2212",
        "race between ranks",
        "Two ranks access the same bytes of a window, one of them writes, and no signal orders them.",
        "Synchronize them: drain the pipes and pto.tnotify on one rank, pto.twait on the other.",
    ),
    (
        "PTO-E2213",
        "signal before data",
        "A signal may overtake the data that it announces: a pipe was not drained before the signal.",
        "Put pto.barrier <PIPE_ALL> between the access and pto.tnotify.",
    ),
    (
        "PTO-E2214",
        "signal without a wait",
        "A launch set a signal and ended without a wait for it.",
        "Wait for it, or leave it out: the next launch finds it set.",
    ),
    (
        "PTO-E2215",
        "stale signal",
        "A wait ends without a signal in this launch: the value is from an earlier launch.",
        "Reset the signal after each launch, or continue to count in every launch.",
    ),
    (
        "PTO-E2216",
        "signal set and added to",
        "One core sets a signal and another core adds to it, so that an addition may be lost.",
        "Let all cores add, or give each core its own signal.",
    ),
    (
        "PTO-E2217",
        "signal below zero",
        "More was subtracted from a signal than had been added to it.",
        "Subtract only values that a wait has read.",
    ),
    (
        "PTO-E2218",
        "wait for a signal of another rank",
        "A rank waits for a word in the window of another rank, and may never see it change.",
        "Wait for a word in its own window, and let the other rank write it.",
    ),
    (
        "PTO-E2301",
        "deviation from the float64 shadow",
        "A result differs from exact arithmetic by more than its type explains.",
        "Check the first named instruction; later instructions inherit the error.",
    ),
    (
        "PTO-E2302",
        "NaN or infinity appears",
        "A result is NaN although no operand is, or infinite although all operands, or the float64 shadow, "
        "are finite.",
        "Look for overflow, division by zero or invalid operands there.",
    ),
    (
        "PTO-E2401",
        "no C++ compiler",
        "Engine cpp and pto build need a compiler for C++20 and the headers of the package; one is missing. "
        "Engine native needs a compiler for a call that is in no pack and that the reference engine cannot "
        "perform, either.",
        "Install g++ 11 or clang++ 15 or newer, or name a compiler in PTO_CXX.",
    ),
    (
        "PTO-E2402",
        "C++ that does not compile",
        "The compiler rejects the C++ of a kernel, written by hand or emitted.",
        "See the compiler's message; if it rejects emitted C++, this is a bug of pto.",
    ),
    (
        "PTO-E2403",
        "option of another engine",
        "The engine does not have the option, or the option does not apply to the input.",
        "Leave out --engine (engine=), or the option.",
    ),
    (
        "PTO-E2404",
        "no kernel in a C++ file",
        "pto build searches for functions marked __global__; the file has none, or not the requested one.",
        "Mark the kernel __global__, or name another with --entry.",
    ),
    (
        "PTO-E2405",
        "unusable library",
        "A library cannot be loaded, does not list its kernels, or was built for another target.",
        "Make it with pto build, for this machine and target.",
    ),
    (
        "PTO-E2406",
        "no llvmlite",
        "llvmlite is missing, which generates objects, LLVM IR and assembly of the CPU.",
        "Install it: pip install llvmlite.",
    ),
    (
        "PTO-E2407",
        "kernel name that is not a symbol",
        "The name of a kernel becomes the name of a C function in its object, and C does not allow this "
        "name.",
        "Give the function a name of letters, digits and underscores.",
    ),
    (
        "PTO-E2408",
        "dry run that depends on data",
        "A dry run issues every instruction, but computes no tiles. This kernel needs data: it reads a "
        "signal, or a scalar from a tile.",
        "Run it with its data: leave out --dry (dry=True).",
    ),
    (
        "PTO-E2409",
        "a cache that other users can write",
        "Compiled kernels are loaded from the cache: a user who can write it can run code as this user. The "
        "folder of the cache, or a parent, belongs to another user, or its mode lets others write. The cache "
        "is not used; kernels are compiled to a private folder, which is removed when the process ends.",
        "Type the command in the message (chmod go-w FOLDER), or name a folder of your own in PTO_CACHE_DIR. "
        "To share a cache, name it in PTO_CACHE_SHARED, which is only read.",
    ),
    (
        "PTO-E2440",
        "no z3",
        "z3 is missing, the solver behind pto prove and pto.prove.",
        "Install it: pip install 'pto[prove]'.",
    ),
    (
        "PTO-E2441",
        "unusable assumption",
        "An assumption about the parameters of a kernel is not a condition on them, or names something "
        "else, or no values satisfy all assumptions.",
        "Write a condition on integer parameters, blocks or extents: 'rows % 16 == 0', 'x.shape[0] <= 4096'.",
    ),
    (
        "PTO-E2442",
        "not proved",
        "pto prove could not decide a property: the proof cannot follow an instruction or a number, the "
        "solver gave up, or a run with values that may break the property reports nothing.",
        "Read the reason at the location; an assumption (--assume) often decides it.",
    ),
    (
        "PTO-E2420",
        "wrong call of a whole program",
        "A program under pto ranks calls the device runtime or the communication library with invalid "
        "arguments: memory that was not allocated, too many bytes, a group that was destroyed.",
        "Check the arguments of the call.",
    ),
    (
        "PTO-E2421",
        "invalid sources of a program",
        "A launch with <<<...>>> does not name a kernel, or the given files are not one program.",
        "Write kernel<<<blocks, nullptr, stream>>>(arguments); put arguments of the program after --.",
    ),
    (
        "PTO-E2422",
        "ranks that did not meet or failed",
        "A launcher has started another number of ranks than requested, the ranks did not find each other, a "
        "rank was killed, a rank was stopped while others waited for it, or the time limit passed.",
        "Check the rank that ended first: the message has the state of each rank.",
    ),
    (
        "PTO-E2423",
        "foreign process or message in a launch of ranks",
        "Ranks meet in a folder that only the user can enter, and prove to each other that they belong to "
        "the launch. Either other users can enter that folder, or a process that answers as a rank does not "
        "have the secret of the launch, or a message has an unknown form.",
        "Remove the folder that the message names, or set XDG_RUNTIME_DIR to a folder of your own; run the "
        "same version of pto in all processes.",
    ),
    (
        "PTO-E2424",
        "damaged trace of a rank",
        "pto ranks --sanitize reads a trace of the kernels of each rank from a file. A message in that file "
        "has a wrong checksum: the program was built by another version of pto, or the file was damaged.",
        "Build the program again with this version; check the disk of the folder for temporary files.",
    ),
    (
        "PTO-E2901",
        "invalid search",
        "A parameter, a condition or an expression ${..} of a tuned program has an unknown name, no values, "
        "or is malformed.",
        "Write what the message expects; pto tune --help shows the forms.",
    ),
    (
        "PTO-E2902",
        "no valid choice",
        "All choices of parameters are illegal, too large, or end with an error; the message has the first.",
        "Give other values, or correct the program for the first of them.",
    ),
    (
        "PTO-E2801",
        "not records of a run",
        "A file or array does not contain records of the task runtime, is damaged, or has another version.",
        "Give a .npz or .json file written by Records.save, or a perf_swimlane JSON file of version 1 or 2.",
    ),
    (
        "PTO-E2802",
        "contradictory records",
        "Records of a run have a task twice, unknown numbers, or impossible times.",
        "Record the run again; records that the runtime wrote itself never contradict themselves.",
    ),
    (
        "PTO-E2601",
        "no folder to run",
        "pto runtime run needs a folder with golden.py and kernels/kernel_config.py; one of them is missing.",
        "Give the folder that contains golden.py, or name both files with -k and -g.",
    ),
    (
        "PTO-E2602",
        "a Python file of a folder fails",
        "kernel_config.py or golden.py is not Python, or raises an exception in the line shown.",
        "Correct the file, or install what it imports.",
    ),
    (
        "PTO-E2603",
        "wrong configuration of a folder",
        "A value of kernel_config.py or golden.py is missing, has a wrong type, or is out of range.",
        "Write what the message expects.",
    ),
    (
        "PTO-E2604",
        "no such case",
        "The case that --case, PA_CASE or DEFAULT_CASE names is not in ALL_CASES of golden.py.",
        "Name one of the cases that are listed.",
    ),
    (
        "PTO-E2605",
        "no entry point",
        "A kernel does not define kernel_entry, or an orchestration does not export its function.",
        'Define it extern "C" with the expected name.',
    ),
    (
        "PTO-E2606",
        "results differ from golden",
        "An output of a run is further from compute_golden than RTOL and ATOL of golden.py allow.",
        "Look at the first element that differs, and at the task that writes it.",
    ),
    (
        "PTO-E2607",
        "unexpected write",
        "A run wrote outside one of its tensors, or (a warning) to a tensor that is not an output.",
        "Check shapes and offsets of the kernels; name a tensor that is meant to change in __outputs__.",
    ),
    (
        "PTO-E2608",
        "no native task runtime",
        "The module of the task runtime is missing or was built for another Python.",
        "Install the package again, or make setup in a checkout.",
    ),
    (
        "PTO-E2609",
        "the run failed",
        "The task runtime ended with the error in the message.",
        "See the message.",
    ),
    (
        "PTO-E2610",
        "a view without a tensor",
        "A parameter of a .pto kernel is a view whose size is not fixed, but its slot is a bare address.",
        "Use pointers and numbers, or the runtime tensormap_and_ringbuffer, whose slots are tensors.",
    ),
    (
        "PTO-E2611",
        "unordered accesses",
        "A task writes memory that an earlier task reads or writes, without a dependency between them (the "
        "task runtime tracks writers, not readers; with explicit edges, an edge is missing), reads memory "
        "whose scope has ended, or writes to an input. Sanitizer tasks and --check-hazards find it; the "
        "result depends on the schedule.",
        "Use a fresh tensor, make the parameter INOUT, or add the edge.",
    ),
    (
        "PTO-E2620",
        "deadlock of the orchestration",
        "The orchestration waits for a task slot, heap space, entries of a pool or a cluster. No ready or "
        "running task can release any, because scopes hold them that only the orchestration can end.",
        "End scopes earlier, or make the ring or pool as large as the report says.",
    ),
    (
        "PTO-E2621",
        "invalid task or run",
        "A task has wrong parameters, names an unknown kernel or core type, or a run has impossible options.",
        "Write what the message expects; it names the task and the source location of its submission.",
    ),
    (
        "PTO-E2622",
        "a kernel failed",
        "A kernel raised an exception, failed a check or trapped; the message names task, kernel and core.",
        "Correct the kernel; run it alone with pto run to inspect it.",
    ),
    (
        "PTO-E2623",
        "the orchestration failed",
        "The orchestration function threw an exception, or one of its assertions failed.",
        "See the message; the run leaves no results.",
    ),
    (
        "PTO-E2624",
        "deadlock of kernels",
        "Kernels wait for each other (a pipe, a semaphore) and none of them can continue.",
        "Check the wait of each core: a push, a pop or a signal has no counterpart.",
    ),
    (
        "PTO-E2625",
        "cycle of tasks",
        "The edges of a graph that was built by hand form a cycle, so its tasks can never start.",
        "Remove one of the edges that the message names.",
    ),
    (
        "PTO-E2626",
        "a kernel without a duration",
        "In virtual time, the duration of every kernel comes from a table, a function or the cost model, and "
        "none of them has this kernel. The cost model supports kernels that are programs (.pto).",
        "Name the kernel in the table (--durations, durations=), or measure it on this host (--measure).",
    ),
    (
        "PTO-E2627",
        "invalid table of times",
        "A file or mapping of durations or overheads has an unknown name, a value that is not a time, or a "
        "wrong form.",
        "Write what the message expects: microseconds by kernel, nanoseconds by overhead.",
    ),
    (
        "PTO-E2629",
        "internal error of the task runtime",
        "The runtime found its own data in an invalid state.",
        "Report this bug of pto, with the program.",
    ),
    (
        "PTO-E3001",
        "not in the language",
        "The language does not have this statement or expression of Python.",
        "Write it with the features of the language; the message names an alternative.",
    ),
    (
        "PTO-E3002",
        "unknown name",
        "A name is not defined, or not on every path to this point, or a module has no such operator.",
        "Correct the spelling, or set the name before.",
    ),
    (
        "PTO-E3003",
        "wrong arguments of an operator",
        "An operator has no such parameter, or a parameter expects other words or lists.",
        "Write what the message expects.",
    ),
    (
        "PTO-E3004",
        "wrong type",
        "A tile is given instead of a tensor, element types differ, or a number has another type.",
        "Load, store or cast it as the message says.",
    ),
    (
        "PTO-E3005",
        "shapes that do not fit",
        "A window exceeds its array, or shapes of operands do not match.",
        "Correct offsets or shapes; the message has both.",
    ),
    (
        "PTO-E3006",
        "misplaced operation",
        "An orchestration contains work of a core, or a core contains work of an orchestration.",
        "Move it into `with pl.at(level=pl.Level.CORE_GROUP):` or a function with `@pl.jit.incore`, or out "
        "of it.",
    ),
    (
        "PTO-E3007",
        "a call that does not fit",
        "A function is called with arguments that do not match its parameters.",
        "Give matching arguments; the message names the parameter.",
    ),
    (
        "PTO-E3008",
        "ambiguous name",
        "After branches or iterations, a name may have different types, or stand for different tensors.",
        "Use different names, or write into one tensor.",
    ),
    (
        "PTO-E3009",
        "not supported yet",
        "The language has this feature, but cannot lower it for this target yet.",
        "Write it another way; the message names the missing part.",
    ),
    (
        "PTO-E3010",
        "unwritten output",
        "A parameter is declared pl.Out, and no statement stores to it; often its name was assigned "
        "to a new value. Or the body returns an array that is not an argument: calls return None.",
        "Write into it: out[:] = value, pl.store(tile, offsets, out), pl.assemble(out, value, offset).",
    ),
    (
        "PTO-E3011",
        "wrong direction of a parameter",
        "A tensor is written although its parameter is an input, or read before it is written although its "
        "parameter is an output. Dependencies of tasks follow from directions.",
        "Declare it pl.Out if its old contents do not matter, else pl.InOut; the message has the text.",
    ),
    (
        "PTO-E3012",
        "reduction over padding",
        "A row or column is reduced after it was padded with a value that changes the result.",
        "Pad with the neutral value of the reduction, or reduce the valid region.",
    ),
    (
        "PTO-E3013",
        "dependent iterations or blocks",
        "Iterations of pl.parallel and blocks of pl.spmd must be independent, but one of them accesses data "
        "that another writes, so the result depends on their order.",
        "Give each a part of its own, use pl.range, or add atomically.",
    ),
    (
        "PTO-E3014",
        "incomplete output",
        "A run has not written all elements of an output.",
        "Write all of it, or declare it pl.InOut to keep its old contents.",
    ),
    (
        "PTO-E3015",
        "tensor overwritten while in use",
        "A task waits for the writers of the tensors that it reads. A task that only writes a tensor "
        "(pl.Out) does not wait: it may overwrite data that an earlier task has not read yet, or an earlier "
        "task may overwrite its result.",
        "Create a tensor for each task (pl.create_tensor, in the loop if there is one), or name the tasks to "
        "wait for with deps=.",
    ),
    (
        "PTO-E3016",
        "race between ranks",
        "Tasks of different ranks access the same element of a window, one of them writes it, and neither a "
        "signal nor a task orders them.",
        "Notify after one access and wait before the other (pld.system.notify, pld.system.wait), or use a "
        "barrier.",
    ),
    (
        "PTO-E3101",
        "another package named pypto is installed",
        "Programs that import pypto would run on another package of that name, which is installed: the "
        "compiler that they were written for, or a different project from the package index.",
        "Use pto python --shadow SCRIPT, or set PTO_PYPTO=shadow, to import pto's replacement; or use an "
        "environment without the other package.",
    ),
    (
        "PTO-E3102",
        "unsupported module of pypto",
        "A program imports a module of pypto that this package does not replace.",
        "Use the modules that docs/pypto.md lists; the other project named pypto is not supported.",
    ),
    (
        "PTO-E3103",
        "unsupported name of pypto",
        "A program uses a part of pypto that this package does not replace, such as internals of its "
        "compiler.",
        "Use the alternative in the message; docs/pypto.md lists refused names with reasons.",
    ),
    (
        "PTO-E3104",
        "another package named simpler is installed",
        "Programs that import simpler or simpler_setup would run on another package of that name, which is "
        "installed.",
        "Use pto python --shadow SCRIPT, or set PTO_SIMPLER=shadow, to import pto's replacement; or use an "
        "environment without the other package.",
    ),
    (
        "PTO-E3105",
        "unsupported module of simpler",
        "A program imports a module of simpler or simpler_setup that this package does not replace, or a "
        "module of its checkout (simpler_setup.goldens) from outside the checkout.",
        "Use the alternative in the message; docs/simpler.md lists the supported modules.",
    ),
    (
        "PTO-E3106",
        "unsupported part of simpler",
        "A program uses a feature of worker, orchestrator or compiler that this package does not simulate: "
        "other machines, asynchronous copy engines, records in the format of a device's tools, machine code.",
        "Use the alternative in the message; docs/simpler.md lists refused features with reasons.",
    ),
    (
        "PTO-E3107",
        "scene test that cannot run",
        "A scene test has no case for the requested platform, or a case needs more devices than were named.",
        "Use a case or a number of devices from the message; devices are simulated, so any number is "
        "available.",
    ),
)
