import { defineExport } from '../../csv/export.ts';

export const command = defineExport('purchase', 'Export all purchases to a new CSV file');
