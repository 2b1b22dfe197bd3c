console.log("Marigold");
