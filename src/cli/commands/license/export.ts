import { defineExport } from '../../csv/export.ts';

export const command = defineExport('license', 'Export all licenses to a new CSV file');
