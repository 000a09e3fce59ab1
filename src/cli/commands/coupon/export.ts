import { defineExport } from '../../csv/export.ts';

export const command = defineExport('coupon', 'Export the coupons of an account to a new CSV file');
