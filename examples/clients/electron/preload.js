const { contextBridge, ipcRenderer } = require('electron');

contextBridge.exposeInMainWorld('license', {
  verify: (licenseKey) => ipcRenderer.invoke('verify-license', licenseKey),
  use: (licenseKey) => ipcRenderer.invoke('count-use', licenseKey),
});
