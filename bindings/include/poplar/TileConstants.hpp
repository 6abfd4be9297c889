// Numbers of a tile that codelets refer to: its workers, its memory and its control registers.
#pragma once
#define CTXT_WORKERS 6
#define CWEI_WORKERS 6
#define TMEM_BASE_ADDR 0x4c000
#define TMEM_REGION0_BASE_ADDR 0x4c000
#define TMEM_ELEMSIZE 0x4000
#define TFPU_AMP_UNITS_PER_SET 4
#define TFPU_AACC_PER_AMP_UNIT 4
#define CSR_W_WSR__INDEX 0
#define CSR_W_WSR__CTXTID_M1__SHIFT 0
#define CSR_W_WSR__CTXTID_M1__MASK 7
#define CSR_W_REPEAT_COUNT__VALUE__MASK 0xffff
#define CSR_W_FP_CLR__INDEX 0x71
#define CSR_W_FP_CLR__ZAACC__SHIFT 3
#define CSR_W_FP_CLR__ZAACC__MASK 1
#define CSR_W_FP_CTL__INDEX 0x60
#define CSR_W_FP_SCL__INDEX 0x61
#define CSR_W_FP_NFMT__INDEX 0x62
#define CSR_S_FP_ICTL__INDEX 0x63
#define CSR_S_CCCSLOAD__INDEX 0x50
#define CSR_UPPER_MASK 0x7f
#define NUM_STRIDE_BITS 10
