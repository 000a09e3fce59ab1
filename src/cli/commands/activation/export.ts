import { defineExport } from '../../csv/export.ts';

export const command = defineExport('activation', 'Export all activations to a new CSV file');
