import { defineExport } from '../../csv/export.ts';

export const exportPurchases = defineExport('purchase', 'Export all purchases to a new CSV file');
