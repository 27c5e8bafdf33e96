"""Our own diagnostic codes, PTO-Exxxx: (code, title, what it means, way out).

01xx text, 02xx names and structure, 03xx types, 04xx shapes, 05xx locations and layouts, 06xx target
profiles, 07xx memory, 08xx synchronization, 09xx auto and manual mode, 10xx scopes, 11xx cross-core FIFOs,
12xx bytecode, 13xx emitted C++, 30xx the Python language.
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
        "An option asks for something that does not happen with the other options or with this program.",
        "Leave it out, or change the others as the message says.",
    ),
    (
        "PTO-E0004",
        "not a PTO program",
        "The file is C++, Python or a compiled library, where text or bytecode of PTO is wanted.",
        "pto run and pto build take C++, pto run takes libraries; the other tools take programs. Python is "
        "run by python: FUNCTION.lower(ARGUMENTS).as_pto() gives the text of its kernels.",
    ),
    (
        "PTO-E0005",
        "options that contradict each other",
        "--emit, the suffix of -o and --target say what is written; two of them say different things.",
        "Leave one out: each decides alone.",
    ),
    (
        "PTO-E0101",
        "unexpected character",
        "The text holds a character that no token begins with.",
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
        "Take the suggested name; `pto isa` lists all.",
    ),
    (
        "PTO-E0109",
        "unknown type",
        "No type has this name.",
        "Take the suggested name, or define the alias first.",
    ),
    (
        "PTO-E0110",
        "malformed type",
        "The parameters of a type are not of its form.",
        "Follow the form shown.",
    ),
    ("PTO-E0111", "unknown attribute value", "No enum or alias has this name.", "Take the suggested name."),
    (
        "PTO-E0112",
        "bad attribute value",
        "The attribute does not take this value.",
        "Take one of the listed values.",
    ),
    (
        "PTO-E0113",
        "unknown attribute or directive",
        "The instruction has no attribute of this name.",
        "Take the suggested name, or prefix a foreign attribute with its dialect.",
    ),
    ("PTO-E0114", "attribute given twice", "One dictionary holds the same key twice.", "Remove one."),
    ("PTO-E0115", "missing attribute", "The instruction needs an attribute that is not there.", "Add it."),
    (
        "PTO-E0116",
        "attributes or operands do not fit",
        "Attribute values, or which operands are there, break a rule of the instruction.",
        "Follow the rule in the message; `pto isa NAME` lists them all.",
    ),
    (
        "PTO-E0201",
        "undefined value",
        "A value is used that nothing defines.",
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
        "A yield, return or branch passes other values than its target takes, or a module declares a "
        "function with another type than the one that defines it.",
        "Pass what is declared.",
    ),
    (
        "PTO-E0214",
        "bad region",
        "The body of an operation is not of the form it needs.",
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
        "Pass what the function declares.",
    ),
    (
        "PTO-E0219",
        "no function",
        "The program has no function, so nothing comes out.",
        "Is it the right file? Put the instructions into a func.func.",
    ),
    (
        "PTO-E0301",
        "types do not fit",
        "Operand types break a rule of the instruction.",
        "Make the types agree, with pto.tcvt where needed.",
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
        "Shapes or valid regions break a rule of the instruction.",
        "Make the extents agree as the message says.",
    ),
    (
        "PTO-E0402",
        "wrong lane count",
        "A vector register holds exactly 256 bytes.",
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
        "A view is declared with a layout that its constant shape and strides rule out.",
        "Correct the strides, or leave the layout out to have it inferred.",
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
        "The instruction may not write what it still reads.",
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
        "Tiles had to share bytes in a function that orders its pipes with flags of its own, which know "
        "nothing of it.",
        "Let the assembler insert the flags (--enable-insert-sync), or place the tiles by hand.",
    ),
    (
        "PTO-E0705",
        "accumulator is another tile",
        "Hardware adds a product to its destination: the accumulator has to be that tile, and cannot.",
        "Accumulate into the tile itself, or copy it first.",
    ),
    (
        "PTO-E0803",
        "wait without a set",
        "On some path a flag is waited for that nothing sets: the pipe hangs.",
        "Set the flag after the producer, on every path.",
    ),
    (
        "PTO-E0804",
        "flag set twice",
        "A flag is set again before it was waited for.",
        "Wait first, or use another id.",
    ),
    ("PTO-E0805", "flag left set", "A flag is still set when the function ends.", "Wait for it."),
    (
        "PTO-E0806",
        "buffer token misused",
        "A token is taken twice, or released without being held.",
        "Pair every get_buf with one rls_buf.",
    ),
    ("PTO-E0807", "buffer token left held", "A token is still held when the function ends.", "Release it."),
    (
        "PTO-E0808",
        "branches disagree on a flag",
        "A flag is set on one branch of an if only.",
        "Set or wait for it on both branches.",
    ),
    (
        "PTO-E0809",
        "flags by hand, none inserted",
        "Flags were to be inserted, but the function has some of its own: inserted ones would mix with them.",
        "Remove its flags, or do not ask for insertion.",
    ),
    (
        "PTO-E0810",
        "no flags inserted",
        "The program leaves its tiles to the tools, and has no flags: nothing orders its pipes.",
        "Have flags inserted, `ptoas --enable-insert-sync`, or write them.",
    ),
    (
        "PTO-E0901",
        "tile without address",
        "In manual mode every tile needs an address.",
        "Give every tile an address, or none.",
    ),
    (
        "PTO-E0902",
        "tile with address",
        "At level1 and level2 tiles are placed by the assembler.",
        "Use --pto-level=level3, or drop the address.",
    ),
    (
        "PTO-E0903",
        "tassign in auto mode",
        "tassign binds addresses, which is the assembler's work in auto mode.",
        "Use --pto-level=level3.",
    ),
    (
        "PTO-E0904",
        "tassign with automatic synchronization",
        "Rebinding tiles defeats automatic flag insertion.",
        "Insert the flags by hand.",
    ),
    (
        "PTO-E0905",
        "fixed reserved buffer in auto mode",
        "A reserved buffer with a fixed base cannot be kept clear by the planner.",
        "Use auto = true, or place every tile by hand (level3).",
    ),
    (
        "PTO-E1001",
        "vector operation outside a vecscope",
        "Registers, masks and alignment live inside a vecscope.",
        "Wrap the code in pto.vecscope { ... }.",
    ),
    (
        "PTO-E1002",
        "tile operation inside a vecscope",
        "Tile, DMA and flag operations belong outside.",
        "Move it out.",
    ),
    (
        "PTO-E1003",
        "wrong core",
        "The operation runs on the other kind of core.",
        "Move it to the right section.",
    ),
    ("PTO-E1004", "nested vecscopes", "A vecscope inside another.", "Close the outer one first."),
    (
        "PTO-E1005",
        "register leaves its vecscope",
        "Registers, masks and alignment may not leave a vecscope.",
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
        "Alignment state is consumed by its use.",
        "Use the state it returned.",
    ),
    (
        "PTO-E1008",
        "load and store alignment mixed",
        "Load streams start with vldas, store streams with init_align.",
        "Start the stream with the right operation.",
    ),
    (
        "PTO-E1101",
        "several pipe initialisations",
        "A function may initialise one side of the pipe once.",
        "Keep one.",
    ),
    (
        "PTO-E1102",
        "buffer reserved twice",
        "Two reserve_buffer of one function have the same name.",
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
        "pipe not initialised",
        "A FIFO operation without initialize_pipe in its function.",
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
        "A pipe on reserved buffers needs exactly two ends in two functions.",
        "Initialise the pipe in both functions, on the same reserved buffer.",
    ),
    (
        "PTO-E1108",
        "reserved buffer without a place",
        "A reserved buffer has an impossible base, or finds no room beside the tiles of its core.",
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
        "The file is of a version, or has flags, that this release does not know.",
        "Read it with the release that wrote it, or encode the program again.",
    ),
    (
        "PTO-E1203",
        "payload length does not match",
        "The header gives another size than the file has: it is cut or has grown.",
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
        "A string, type, attribute, constant, value or file is named that does not exist here.",
        "Encode or assemble the program again.",
    ),
    (
        "PTO-E1209",
        "count too large",
        "More entries are announced than the rest of the section can hold.",
        "Encode or assemble the program again.",
    ),
    (
        "PTO-E1210",
        "bytes left over",
        "A section goes on after its last entry.",
        "Encode or assemble the program again.",
    ),
    (
        "PTO-E1211",
        "unknown operation in bytecode",
        "An opcode, variant, immediate or operation name is not one that we know.",
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
        "Operands, results, regions or attributes are not those the operation has.",
        "Encode or assemble the program again.",
    ),
    (
        "PTO-E1215",
        "file unfolds too far",
        "A small file names long texts so often that the program would fill the memory.",
        "The file is damaged or hostile; encode the program again.",
    ),
    (
        "PTO-E1216",
        "not expressible in PTO-BC v0",
        "With --strict-v0, an operation that the field's reader cannot take.",
        "Encode without --strict-v0, or rewrite the operation.",
    ),
    (
        "PTO-E1221",
        "no file of images",
        "The file is no ELF, has no section .pto, or what is there is no image; or it lacks the program.",
        "Make it with ptoas PROGRAM -o FILE.elf.",
    ),
    (
        "PTO-E1222",
        "unsupported version of an image",
        "The image, or its table of lines, is of a version that this release does not know.",
        "Assemble the program again, or use the release that made the file.",
    ),
    (
        "PTO-E1223",
        "damaged ELF file",
        "The header or a section does not lie in the file, or has no name.",
        "The file is cut or damaged: make it again.",
    ),
    (
        "PTO-E1224",
        "image that cannot be run",
        "An instruction, a jump or a value of an image is not where it has to be; nothing of it is run.",
        "The file is damaged, or no tool of ours made it: assemble the program again.",
    ),
    (
        "PTO-E1225",
        "image with a call that nobody has",
        "Neither the machine nor a pack has a function that an image calls, and the program in the file does "
        "not make this image. The text of a file is never compiled.",
        "Assemble the program again with this release.",
    ),
    (
        "PTO-E1226",
        "mistake in the listing of an image",
        "A line of the text that pto objdump prints, and ptoas assembles, is not as it should be.",
        "Write what the message expects; docs/image.md describes the form.",
    ),
    (
        "PTO-E1301",
        "no C++ spelling",
        "Nothing in C++ stands for this instruction, or for this form of it.",
        "Use instructions that have a spelling (`pto isa NAME` shows it), or run it on another engine.",
    ),
    (
        "PTO-E1302",
        "type without a place in C++",
        "A value crosses a function, a branch or a loop, and C++ has no type for it there.",
        "Pass pointers and scalars, and make views, tiles and FIFO handles where they are used.",
    ),
    (
        "PTO-E1303",
        "constant too large for its C++ type",
        "index is a 32-bit integer in the emitted C++ unless told otherwise.",
        "Emit with --index-type=int64_t.",
    ),
    (
        "PTO-E1304",
        "two functions with one C++ name",
        "Characters that C++ identifiers do not have become '_', and two names become the same.",
        "Rename one of the functions.",
    ),
    (
        "PTO-E2001",
        "no function to run",
        "The entry is not there, or several could be meant.",
        "Name it: --entry.",
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
        "The engine has no executor for the operation, or it is no instruction of the ISA.",
        "Replace it, or use an engine that has it.",
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
        "argument that no launch can pass",
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
        "no such place to stop",
        "A breakpoint names a line behind the last operation, a file that no operation "
        "comes from or a function "
        "that is not there; or what is to be watched is no name with indices.",
        "Write LINE, LINE:N, FILE:LINE or @FUNCTION, and %TILE[ROW, COLUMN] for what is watched.",
    ),
    (
        "PTO-E2017",
        "launch request that cannot be followed",
        "An editor asks the debugger for a launch without a program, or with options "
        "that `pto run` does not have.",
        "Give `program`, `args` and options by their names, as the page on the debugger shows.",
    ),
    (
        "PTO-E2018",
        "no recording",
        "What a kernel did has no words in a program without control flow (registers that C++ made by "
        "itself, memory that is no argument, several ranks), or there is more of it than --limit allows.",
        "Record fewer turns of loops and fewer blocks, or raise --limit; run other kernels under --sanitize.",
    ),
    (
        "PTO-E2101",
        "access outside memory",
        "An instruction touches bytes behind the end of a buffer or array.",
        "Check offsets, strides and sizes, and the size of the array.",
    ),
    ("PTO-E2102", "illegal at run time", "An instruction meets values the ISA forbids.", "See the message."),
    (
        "PTO-E2103",
        "tile without an address",
        "A declared tile is used before anything bound it.",
        "Bind it with tassign or tpop first.",
    ),
    (
        "PTO-E2104",
        "stuck program",
        "Every core waits for something that nobody will do.",
        "Pair every wait with a set; free FIFO slots; let all cores reach a grid barrier.",
    ),
    ("PTO-E2105", "trap", "The program executed pto.trap.", "Find out why it got there."),
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
        "Two blocks touch the same bytes of global memory, and one writes.",
        "Give each block its own part, use atomic stores, or meet in syncall.",
    ),
    (
        "PTO-E2203",
        "use of undefined data",
        "A store, branch or address depends on data that nobody defined.",
        "Write it first; check valid regions.",
    ),
    (
        "PTO-E2204",
        "window outside its source",
        "A partition or subview leaves the view or tile it is cut from.",
        "Keep offset + size within the source.",
    ),
    (
        "PTO-E2205",
        "address outside a buffer",
        "A tile lies, or is accessed, beyond the capacity of its buffer.",
        "Place it lower, or make it smaller.",
    ),
    (
        "PTO-E2206",
        "hazard inside a vecscope",
        "A load and a store of the same bytes, which neither a register nor a mem_bar orders.",
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
        "A mask made for elements of one width turns lanes of another width on and off.",
        "Make the mask for the width it is used with, or change it with pbitcast, ppack or punpack.",
    ),
    (
        "PTO-E2209",
        "pointer leaves its tile",
        "An access through a pointer made from a tile touches bytes outside that tile.",
        "Keep the access inside the tile, or make the pointer from the tile that is meant.",
    ),
    (
        "PTO-E2210",
        "tile overwritten by another",
        "A tile is read after another tile, no alias of it, has overwritten part of what it holds.",
        "Give one of them another address, or read the first before the second is written.",
    ),
    (
        "PTO-E2211",
        "index outside its source",
        "An element of an index operand leads out of the valid region of its tile, or out of its view.",
        "Keep indices within what is valid there, or say what happens to others (clamp, wrap, skip, zero).",
    ),
    (
        "PTO-E2212",
        "race between ranks",
        "Two ranks touch the same bytes of a window, one of them writes, and no signal orders them.",
        "Let the one tell the other: drain the pipes, pto.tnotify; and pto.twait there.",
    ),
    (
        "PTO-E2213",
        "signal before data",
        "A rank was told of something by a signal that may overtake it: a pipe was not drained before.",
        "Put pto.barrier <PIPE_ALL> between the access and pto.tnotify.",
    ),
    (
        "PTO-E2214",
        "signal that nobody waits for",
        "A signal was given in a launch that ended without anybody having waited for it.",
        "Wait for it, or leave it out: the next launch finds it given.",
    ),
    (
        "PTO-E2215",
        "stale signal",
        "A wait ends although nobody gave the signal in this launch: it was left from before.",
        "Set the signal back after each launch, or count on in every launch.",
    ),
    (
        "PTO-E2216",
        "signal set and added to",
        "One signal is set by one core and added to by another: what was added may be lost.",
        "Let all of them add, or give each a signal of its own.",
    ),
    (
        "PTO-E2217",
        "signal below zero",
        "More was taken from a signal than had been added to it.",
        "Take back only what a wait has seen.",
    ),
    (
        "PTO-E2218",
        "wait for a signal of another rank",
        "A rank waits for a word in the window of another one: it may never see it change.",
        "Wait for a word of the own window, and let the other rank write that.",
    ),
    (
        "PTO-E2301",
        "departure from the float64 shadow",
        "A result is further from exact arithmetic than its type explains.",
        "Look at the instruction named first: later ones inherit the error.",
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
        "Engine native needs one for a call that only a compiled function performs and that no pack has.",
        "Install g++ 11 or clang++ 15 or newer, or name a compiler in PTO_CXX.",
    ),
    (
        "PTO-E2402",
        "C++ that does not compile",
        "The compiler rejects the C++ of a kernel, written by hand or emitted.",
        "See the compiler's message; emitted C++ that it rejects is a bug of ours.",
    ),
    (
        "PTO-E2403",
        "option of another engine",
        "Sanitizers, schedules, shadows and memory maps exist on the reference engine only.",
        "Leave out --engine (engine=), or name the reference engine.",
    ),
    (
        "PTO-E2404",
        "no kernel in a C++ file",
        "pto build looks for functions marked __global__; the file has none, or not the one asked for.",
        "Mark the kernel __global__, or name another with --entry.",
    ),
    (
        "PTO-E2405",
        "library that cannot be run",
        "A library cannot be loaded, does not say which kernels it has, or was built for something else.",
        "Make it with pto build, for this machine and target.",
    ),
    (
        "PTO-E2406",
        "no llvmlite",
        "Objects, LLVM IR and assembly of the CPU are made by LLVM through llvmlite, which is missing.",
        "Install it: pip install llvmlite.",
    ),
    (
        "PTO-E2407",
        "kernel that cannot be a symbol",
        "The name of a kernel is that of a function in its object, which C calls.",
        "Give the function a name of letters, digits and underscores.",
    ),
    (
        "PTO-E2408",
        "dry run that depends on data",
        "A dry run issues every instruction and computes no tile; here a scalar is read out of one, or a "
        "signal is looked at.",
        "Run it with its data: leave out --dry (dry=True).",
    ),
    (
        "PTO-E2409",
        "a cache that other users can write",
        "Compiled kernels are loaded from the cache: a user who can write it can run code as this user. The "
        "folder of the cache, or one above it, belongs to another user, or its mode lets others write. The "
        "cache is not used; kernels are compiled into a private folder, which is removed with the process.",
        "Type what the message says (chmod go-w FOLDER), or name a folder of your own in PTO_CACHE_DIR. To "
        "share a cache, name it in PTO_CACHE_SHARED, which is only read.",
    ),
    (
        "PTO-E2420",
        "wrong call of a whole program",
        "A program that pto ranks started calls the device runtime or its communication library with what it "
        "cannot have: memory that was not allocated, more bytes than there are, a group that is gone.",
        "Check what the call is given.",
    ),
    (
        "PTO-E2421",
        "sources of a program that cannot be read",
        "A launch with <<<...>>> is not that of a named kernel, or files are given that are not one program.",
        "Write kernel<<<blocks, nullptr, stream>>>(arguments); arguments of the program go behind --.",
    ),
    (
        "PTO-E2422",
        "ranks that did not come together, or did not end well",
        "A launcher has started another number of ranks than is asked for, they did not find each other, or "
        "one was killed, was stopped while others waited for it, or the time that they had was up.",
        "The message says what each rank did: look at the first that ended.",
    ),
    (
        "PTO-E2423",
        "a process or message that does not belong to a launch of ranks",
        "Ranks meet where only processes of the same user come, and prove to each other that they belong to "
        "the launch. Either other users can enter the folder in which the ranks meet, or a process that "
        "answers as a rank does not know the secret of the launch, or a message has an unknown form.",
        "Remove the folder that the message names, or set XDG_RUNTIME_DIR to a folder of your own; run the "
        "same version of pto in all processes.",
    ),
    (
        "PTO-E2424",
        "a damaged trace of a rank",
        "pto ranks --sanitize reads what the kernels of each rank did from a file. A message of that file has "
        "another checksum than the rank has written: the program was built by another version of pto, or the "
        "file was damaged.",
        "Build the program again with this version; check the disk of the folder for temporary files.",
    ),
    (
        "PTO-E2901",
        "a search that makes no sense",
        "A parameter, a condition or a place ${..} of a program that is to be tuned has an unknown name, no "
        "values, or is no expression.",
        "Write what the message expects; pto tune --help shows the forms.",
    ),
    (
        "PTO-E2902",
        "nothing to choose from",
        "All choices of parameters are illegal, too large, or end with an error; the message has the first.",
        "Give other values, or correct the program for the first of them.",
    ),
    (
        "PTO-E2801",
        "no records of a run",
        "A file or array holds no records of the task runtime, is damaged, or is of another version.",
        "Give a .npz or .json file written by Records.save, or a perf_swimlane JSON file of version 1 or 2.",
    ),
    (
        "PTO-E2802",
        "records that contradict themselves",
        "Records of a run name one task twice, hold unknown numbers, or times that cannot be.",
        "Record the run again; records that the runtime wrote itself must never do this.",
    ),
    (
        "PTO-E2601",
        "no folder to run",
        "pto runtime run needs a folder with golden.py and kernels/kernel_config.py; one of them is missing.",
        "Give the folder that holds golden.py, or name the two with -k and -g.",
    ),
    (
        "PTO-E2602",
        "a Python file of a folder fails",
        "kernel_config.py or golden.py is no Python, or raises an exception; the line shown raised it.",
        "Correct the file, or install what it imports.",
    ),
    (
        "PTO-E2603",
        "wrong configuration of a folder",
        "A value of kernel_config.py or golden.py is missing, of another type, or out of range.",
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
        'Define it extern "C" with the name that is expected.',
    ),
    (
        "PTO-E2606",
        "results differ from golden",
        "An output of a run is further from compute_golden than RTOL and ATOL of golden.py allow.",
        "Look at the first element that differs, and at the task that writes it.",
    ),
    (
        "PTO-E2607",
        "a write that golden does not know of",
        "A run wrote beside one of its tensors, or (a warning) into one that is no output.",
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
        "The task runtime ended with an error; the message is its own.",
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
        "accesses that nothing orders",
        "A task writes what an earlier one reads or writes, with no dependency between them (the task "
        "runtime follows writers, not readers; where edges are explicit, one is missing), reads memory whose "
        "scope has ended, or writes to what it has as an input. Sanitizer tasks and --check-hazards find it; "
        "the outcome depends on the schedule.",
        "Use a fresh tensor, make the parameter INOUT, or add the edge.",
    ),
    (
        "PTO-E2620",
        "the orchestration can never go on",
        "It waits for a task slot, heap space, entries of a pool or a cluster, nothing that is ready or "
        "running can release any, and what it waits for is held by scopes that only it can end.",
        "End scopes earlier, or make the ring or pool as large as the report says.",
    ),
    (
        "PTO-E2621",
        "a task or a run that cannot be",
        "A task has wrong parameters, names an unknown kernel or core type, or a run has impossible options.",
        "Write what the message expects; it names the task and the place where it was submitted.",
    ),
    (
        "PTO-E2622",
        "a kernel failed",
        "A kernel raised an exception, failed a check or trapped; the message names task, kernel and core.",
        "Correct the kernel; run it alone with pto run to look closer.",
    ),
    (
        "PTO-E2623",
        "the orchestration failed",
        "The orchestration function threw an exception or an assertion of its own failed.",
        "See the message; nothing of the run is left behind.",
    ),
    (
        "PTO-E2624",
        "no core can go on",
        "Kernels wait for each other (a pipe, a semaphore) and none of them can continue.",
        "Look at what each core waits for: a push, a pop or a signal has no counterpart.",
    ),
    (
        "PTO-E2625",
        "tasks that wait for each other in a circle",
        "The edges of a graph that was built by hand form a cycle, so its tasks can never start.",
        "Remove one of the edges that the message names.",
    ),
    (
        "PTO-E2626",
        "a kernel without a duration",
        "In virtual time every kernel takes the time that a table, a function or the cost model says, and "
        "none of them knows this one. The cost model knows kernels that are programs (.pto).",
        "Name the kernel in the table (--durations, durations=), or measure it on this host (--measure).",
    ),
    (
        "PTO-E2627",
        "a table of times that makes no sense",
        "A file or mapping of durations or overheads has an unknown name, a value that is no time, or "
        "another form than it should have.",
        "Write what the message expects: microseconds by kernel, nanoseconds by overhead.",
    ),
    (
        "PTO-E2629",
        "the task runtime is wrong",
        "The runtime found its own data in a state that must not be.",
        "This is a bug of ours: report it with the program.",
    ),
    (
        "PTO-E3001",
        "not in the language",
        "A statement or expression of Python that programs of the language do not have.",
        "Write it with what the language has; the message says what is near.",
    ),
    (
        "PTO-E3002",
        "unknown name",
        "A name is not defined, or not on every way to this point, or a module has no such operator.",
        "Correct the spelling, or set the name before.",
    ),
    (
        "PTO-E3003",
        "wrong arguments of an operator",
        "An operator has no such parameter, or a parameter takes other words or lists.",
        "Write what the message expects.",
    ),
    (
        "PTO-E3004",
        "wrong type",
        "A tile stands where a tensor belongs, element types differ, or a number is of another type.",
        "Load, store or cast it as the message says.",
    ),
    (
        "PTO-E3005",
        "shapes that do not fit",
        "A window goes beyond its array, or shapes of operands do not go together.",
        "Correct offsets or shapes; the message has both sides.",
    ),
    (
        "PTO-E3006",
        "misplaced operation",
        "Work of a core stands in an orchestration, or the reverse.",
        "Put it into `with pl.at(level=pl.Level.CORE_GROUP):` or a function with `@pl.jit.incore`, or take "
        "it out of one.",
    ),
    (
        "PTO-E3007",
        "a call that does not fit",
        "A function is called with arguments that its parameters do not take.",
        "Give what the parameters say; the message names the parameter.",
    ),
    (
        "PTO-E3008",
        "a name that is two things",
        "After arms or iterations a name is of several types, or one of several tensors.",
        "Use different names, or write into one tensor.",
    ),
    (
        "PTO-E3009",
        "not supported yet",
        "The language has it, and lowering it for this target is not built.",
        "Write it another way; the message says what is missing.",
    ),
    (
        "PTO-E3010",
        "an output that nothing writes",
        "A parameter is declared pl.Out, and no statement stores into it; often its name was given "
        "to a new value. Or the body returns an array that no argument holds: calls return None.",
        "Write into it: out[:] = value, pl.store(tile, offsets, out), pl.assemble(out, value, offset).",
    ),
    (
        "PTO-E3011",
        "a parameter of another direction",
        "A tensor is written though its parameter says that it is only read, or read before it is written "
        "though it says only written. Tasks wait for each other by directions.",
        "Declare it pl.Out where its old contents do not matter, else pl.InOut; the message has the text.",
    ),
    (
        "PTO-E3012",
        "a reduction over padding",
        "A row or column is reduced after it was padded with a value that changes the result.",
        "Pad with the value that leaves the reduction as it is, or reduce the valid part.",
    ),
    (
        "PTO-E3013",
        "iterations or blocks that depend on each other",
        "pl.parallel and pl.spmd say that iterations and blocks are independent; one of them touches what "
        "another writes, so the result depends on their order.",
        "Give each a part of its own, use pl.range, or add atomically.",
    ),
    (
        "PTO-E3014",
        "an output with holes",
        "After a run there are elements of an output that nothing has written.",
        "Write all of it, or declare it pl.InOut if what it held before is meant to stay.",
    ),
    (
        "PTO-E3015",
        "a tensor is overwritten while it may be in use",
        "A task waits for those that write what it reads. One that only writes a tensor (pl.Out) "
        "waits for nobody: it "
        "may overwrite what an earlier task has not read yet, or be overwritten by one that comes before it.",
        "Make a tensor of its own for each (pl.create_tensor, in the loop where there is one), or "
        "name the tasks to wait "
        "for with deps=.",
    ),
    (
        "PTO-E3016",
        "race between ranks",
        "Tasks of different ranks touch the same element of a window, one of them writes it, and neither a "
        "signal nor a task orders them.",
        "Notify after the one and wait before the other: pld.system.notify, pld.system.wait, or a barrier.",
    ),
    (
        "PTO-E3101",
        "another package is called pypto",
        "Programs that import pypto are to run on this package, and another one of that name is installed: "
        "the compiler that they were written for, or the different project that the package index has.",
        "pto python --shadow SCRIPT, or PTO_PYPTO=shadow, says that this package is meant; or run in an "
        "environment without the other.",
    ),
    (
        "PTO-E3102",
        "nothing stands for a module of pypto",
        "A program imports a module of pypto that this package has no counterpart of.",
        "docs/pypto.md lists what there is; modules of the other project of that name are not among them.",
    ),
    (
        "PTO-E3103",
        "nothing stands for a name of pypto",
        "A program uses a part of pypto that this package does not have: internals of its compiler, or "
        "programs of several ranks.",
        "Use what the message names; docs/pypto.md tells what is refused and why.",
    ),
    (
        "PTO-E3104",
        "another package is called simpler",
        "Programs that import simpler or simpler_setup are to run on this package, and another one of that "
        "name is installed.",
        "pto python --shadow SCRIPT, or PTO_SIMPLER=shadow, says that this package is meant; or run in an "
        "environment without the other.",
    ),
    (
        "PTO-E3105",
        "nothing stands for a module of simpler",
        "A program imports a module of simpler or simpler_setup that this package has no counterpart of, or "
        "one of its own checkout (simpler_setup.goldens) from outside of it.",
        "docs/simpler.md lists what there is; the message says what to do instead.",
    ),
    (
        "PTO-E3106",
        "a part of simpler that is not here",
        "A program asks its worker, its orchestrator or its compiler for something that this package does "
        "not simulate: other machines, engines that copy on their own, records in the form of a device's "
        "tools, machine code.",
        "Use what the message names; docs/simpler.md tells what is refused and why.",
    ),
    (
        "PTO-E3107",
        "a scene test that cannot be run",
        "No case of a scene test is for the platform that was asked for, or a case needs more devices than "
        "were named.",
        "The message lists the cases, or says how many devices to name: they are simulated, so any number "
        "will do.",
    ),
)
