/*
 * What .NET's Native AOT compiler leaves in a program for its stack traces, in small: metadata, a list of
 * methods, tables of those that reflection can call, and the header that leads to them. KIND_BITS: 7 as from
 * .NET 10 on, or 8 as before.
 */
#ifndef KIND_BITS
#define KIND_BITS 7
#endif
#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

__asm__(".set KIND_BITS, " TEXT(
    KIND_BITS) "\n"
               /* integers of one and of two bytes; a record's place; a handle; a text */
               ".macro small n\n\t.byte (\\n)<<1\n.endm\n"
               ".macro wide n\n\t.byte ((\\n)<<2|1)&255, (\\n)>>6\n.endm\n"
               ".macro at label\n\twide \\label-md\n.endm\n"
               ".macro handle kind, label\n"
               "\t.byte (((\\label-md)<<KIND_BITS|\\kind)<<3|3)&255, "
               "(((\\label-md)<<KIND_BITS|\\kind)>>5)&255, "
               "((\\label-md)<<KIND_BITS|\\kind)>>13\n.endm\n"
               ".macro text string\n\t.byte (2f-1f)<<1\n1:\t.ascii \"\\string\"\n2:\n.endm\n"
               ".macro token kind, label\n\t.long \\kind<<(32-KIND_BITS)|(\\label-md)\n.endm\n"

               ".section .rodata\n"
               "md:\t.long 0xdeaddffd\n\tsmall 1\n\tat scope\n"
               "scope:\tsmall 0\n\tat s_shop\n\tsmall 0\n\tsmall 1\n\tsmall 0\n\tsmall 0\n\tsmall 0\n"
               "\tsmall 2\n\t.byte 0xaa, 0xbb\n\tsmall 0\n\tat ns_root\n"
               "ns_root:\thandle 0x38, scope\n\tsmall 0\n\tsmall 0\n\tsmall 0\n\tsmall 1\n\tat ns\n"
               "ns:\thandle 0x2f, ns_root\n\tat s_orders\n\tsmall 1\n\tat basket\n\tsmall 0\n\tsmall 0\n"
               "basket:\tsmall 0\n\thandle 0, md\n\tat ns\n\tat s_basket\n\tsmall 0\n\tsmall 0\n\tsmall 0\n"
               "\tsmall 1\n\tat line\n\tsmall 2\n\tat m_main\n\tat m_ctor\n"
               "line:\tsmall 0\n\thandle 0, md\n\tsmall 0\n\tat s_line\n\tsmall 0\n\tsmall 0\n\tat basket\n"
               "\tsmall 0\n\tsmall 1\n\tat m_ctor\n"
               "m_main:\tsmall 6\n\tsmall 0\n\tat s_main\n"
               "m_ctor:\tsmall 6\n\tsmall 0\n\tat s_ctor\n"
               "core:\tsmall 0\n\tat s_core\n"
               "system:\thandle 0x39, core\n\tat s_system\n"
               "lists:\thandle 0x30, system\n\tat s_lists\n"
               "list:\thandle 0x30, lists\n\tat s_list\n"
               "each:\thandle 0x3d, list\n\tat s_each\n"
               "spec:\thandle 0x3c, instance\n"
               "instance:\thandle 0x3d, each\n\tsmall 0\n"
               "s_shop:\ttext \"Shop\"\ns_orders:\ttext \"Orders\"\ns_basket:\ttext \"Basket`1\"\n"
               "s_line:\ttext \"Line\"\ns_main:\ttext \"Main\"\ns_ctor:\ttext \".ctor\"\ns_core:\ttext "
               "\"Core\"\n"
               "s_system:\ttext \"System\"\ns_lists:\ttext \"Lists\"\ns_list:\ttext \"List`1\"\n"
               "s_each:\ttext \"Each\"\ns_put:\ttext \"Put\"\ns_sum:\ttext \"Sum\"\ns_next:\ttext "
               "\"MoveNext\"\n"
               "md_end:\n"
               "methods:\t.long 5\n"
               "\t.byte 7\n\ttoken 0x3a, basket\n\tat s_put\n\tsmall 9\n\t.long put-.\n"
               "\t.byte 2\n\tat s_sum\n\t.long sum-.\n"
               "\t.byte 11\n\ttoken 0x3a, line\n\tat s_put\n\tsmall 9\n\tsmall 9\n\t.long line_put-.\n"
               "\t.byte 3\n\ttoken 0x3e, spec\n\tat s_next\n\t.long next-.\n"
               "\t.byte 17\n\t.long 0\n\t.long hidden-.\n"
               "methods_end:\n"
               /* one bucket: where its entries are, and two of these: the last byte of a hash, and how far
                  the row is */
               "callable:\t.byte 0\n\t.byte 2, 6\n\t.byte 1, 6\n\t.byte 1, 12\n"
               "\tsmall 0x20\n\tat m_main\n\tsmall 0\n\tsmall 0\n"
               "\tsmall 0x20\n\tat m_ctor\n\tsmall 2\n\tsmall 1\n"
               "callable_end:\n"
               "types:\t.byte 0\n\t.byte 2, 4\n\t.byte 1, 2\n\tsmall 2\n\t.byte 15\n\ttoken 0x3a, line\n"
               "types_end:\n"
               "places:\t.long main-.\n\t.long ctor-.\n\t.long type_line-.\n"
               "places_end:\n"

               ".data\n\t.balign 8\n"
               "type_line:\t.quad 0\n"
               "header:\t.long 0x525452\n\t.short 16, 0\n\t.long 0\n\t.short 6\n\t.byte 24, 1\n"
               ".macro part id, label\n\t.long \\id, 1\n\t.quad \\label, \\label\\()_end\n.endm\n"
               "\t.long 204, 0\n\t.quad header, 0\n"
               "\tpart 306, callable\n\tpart 301, types\n\tpart 308, places\n\tpart 313, md\n\tpart 327, "
               "methods\n"
               ".section __modules,\"aw\",@progbits\n\t.quad header\n"

               ".section .dotnet_eh_table,\"a\",@progbits\n"
               "lsda_method:\t.byte 4\n"
               "lsda_handler:\t.byte 1\n\t.long 0\n"

               ".section __managedcode,\"ax\",@progbits\n"
               ".macro code name, lsda\n\t.balign 16\n\\name:\t.cfi_startproc\n\t.cfi_lsda 0x1b, \\lsda\n"
               "\tnop\n\tnop\n\tret\n\t.cfi_endproc\n.endm\n"
               "\tcode put, lsda_method\n\tcode put_handler, lsda_handler\n"
               "\t.balign 16\nstub:\t.cfi_startproc\n\tnop\n\tret\n\t.cfi_endproc\n"
               "\tcode sum, lsda_method\n\tcode line_put, lsda_method\n\tcode next, lsda_method\n"
               "\tcode hidden, lsda_method\n\tcode main, lsda_method\n\tcode ctor, lsda_method\n"
               "\tcode ctor_handler, lsda_handler\n"
               ".text\n");
